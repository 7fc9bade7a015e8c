"""`tidemark maintain trim | mirror | tidy | airflow` and `tidemark retention`: what keeps a platform small for years.

Exit codes as in step.py. The speed application does the rest by itself.
"""

import click

from infra.embedded import airflow as embedded_airflow
from spark_jobs.cli.step import ledger_step, refuse, thrift
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings


@click.group()
def maintain() -> None:
    """Keep the platform small; the DAGs `maintenance` and `maintenance_hourly` do it."""


@maintain.command()
def trim() -> None:
    """Ask the speed application to remove the partials that no live publication reads."""
    with ledger_step() as store:
        upto = store.lowest_live_cut()
        if upto:
            store.request("trim", up_to_lsn=upto)
        click.echo(f"asked the speed layer to trim partials up to lsn {upto}" if upto else "nothing to trim yet")


@maintain.command()
def mirror() -> None:
    """Bring the tables `ops.*` to what the ledger says."""
    from spark_jobs.publication.mirror import mirror as bring
    from spark_jobs.publication.names import ensure_named

    with ledger_step() as store:
        changed = bring(store)
        with thrift() as execute:
            ensure_named(execute, project_views())
    for table, rows in changed.items():
        click.echo(f"{table}: {rows:,} rows")


@maintain.command()
def tidy() -> None:
    """Remove scratch files and pins that something left behind when it died, a day ago or earlier."""
    from spark_jobs.publication.scratch import tidy as remove

    with ledger_step() as store, thrift() as execute:
        removed = remove(execute, store)
    click.echo(f"removed: {', '.join(removed) or 'nothing'}")


@maintain.command()
def airflow() -> None:
    """Remove old runs from Airflow's database, and their logs (TIDEMARK_AIRFLOW_KEPT_DAYS)."""
    if not embedded_airflow.BIN.exists():
        refuse(f"there is no Airflow at {embedded_airflow.BIN}: this works where Airflow's tasks do")
    try:
        files = embedded_airflow.clean(settings())
    except embedded_airflow.CleanFailed as error:
        refuse(str(error))
    click.echo(f"Airflow's database keeps {settings().airflow_kept_days} days; {files} older log files are removed")


@click.command()
def retention() -> None:
    """Expire old publications, remove the files that nobody needs, ask for the trim of old partials."""
    from spark_jobs.publication.retention import retain

    with ledger_step() as store:
        done = retain(store, project_views(), project_contracts().event_types, thrift)
        click.echo(f"expired publications: {done.expired or 'none'}; dropped pins: {done.dropped_pins or 'none'}")
        for table, files in done.files.items():
            click.echo(f"{table}: {files} files removed")
        click.echo(f"asked the speed layer to trim partials up to lsn {done.trim_up_to}")
