"""`tidemark batch plan | build | audit | publish | rollback | status` and `tidemark retention`.

Exit codes as in step.py; `audit` has its own. A step that fails is written down, so that another run may begin.
"""

import importlib
import json
from datetime import datetime
from typing import Any

import click

from spark_jobs.cli.step import ledger_step, run_option, show, thrift
from spark_jobs.ledger.store import LedgerError
from spark_jobs.orchestration.interface import DAY


class BatchGroup(click.Group):
    """`audit` lives with the gate, and is loaded from there when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["plan", "build", "audit", "publish", "rollback", "status"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "audit":
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module("spark_jobs.cli.quality").audit
        return command


@click.group(cls=BatchGroup)
def batch() -> None:
    """The batch layer: plan, build, audit, publish."""


@batch.command()
@run_option
@click.option("--day", "days", multiple=True, type=click.DateTime([DAY]), help="Rebuild this day as well.")
@click.option("--mode", type=click.Choice(["changed", "full"]), default="changed", help="full: everything from facts.")
def plan(run_id: str, days: tuple[datetime, ...], mode: Any) -> None:
    """Choose the run's cut and write it down."""
    from spark_jobs.batch.plan import describe
    from spark_jobs.batch.plan import plan as make_plan
    from spark_jobs.ledger.view_lock import check
    from spark_jobs.registry.views import project_views

    with ledger_step() as store:
        check(store, project_views())
        _check_schemas()
        columns = [view.column for view in project_views()]
        run = make_plan(store, columns, run_id, [day.date() for day in days], mode)
        for line in describe(run):
            click.echo(line)


def _check_schemas() -> None:
    from spark_jobs.contracts.model import ContractError
    from spark_jobs.storage import log_reader

    try:
        log_reader.read_schema_history()
    except ContractError as error:
        raise LedgerError(str(error)) from error


@batch.command()
@run_option
def build(run_id: str) -> None:
    """Decode what is new, and build every view at the run's cut."""
    from spark_jobs.batch.build import build as build_views
    from spark_jobs.batch.decode_step import decode
    from spark_jobs.registry.views import project_views
    from spark_jobs.storage.session import batch_session

    with ledger_step(run_id) as store:
        run = store.active_run(run_id)
        spark = batch_session("tidemark-batch")
        try:
            decode(spark, store, run, click.echo)
            build_views(spark, store, project_views(), run_id, click.echo)
        finally:
            spark.stop()


@batch.command()
@run_option
def publish(run_id: str) -> None:
    """Show the run's builds to readers, if its audit passed."""
    from spark_jobs.publication.publish import publish as publish_run
    from spark_jobs.registry.views import project_views

    with ledger_step(run_id) as store, thrift() as execute:
        publication = publish_run(execute, project_views(), store, run_id)
        run = store.run(run_id)
        for view_id, lsn in (run.summary.get("held_back") or {}).items() if run else ():
            click.echo(f"view {view_id} keeps its old source: it has no speed partials at lsn {lsn}")
        if publication is None:
            click.echo(f"run {run_id} had nothing new: nothing is published, the current publication stands")
        else:
            click.echo(f"publication {publication.id} is in force: cut {publication.cut}")


@batch.command()
@click.argument("publication", type=int, required=False)
def rollback(publication: int | None) -> None:
    """Serve PUBLICATION again (default: the one before the current)."""
    from spark_jobs.publication.rollback import rollback as roll_back
    from spark_jobs.registry.views import project_views

    with ledger_step() as store, thrift() as execute:
        made = roll_back(execute, project_views(), store, publication)
        click.echo(f"publication {made.id} is in force: what publication {made.restores} showed, cut {made.cut}")


@batch.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(as_json: bool) -> None:
    """Publications and runs, newest first."""
    with ledger_step() as store:
        current = store.current_publication()
        publications = [
            {"id": p.id, "kind": p.kind, "state": p.state, "cut": p.cut, "run": p.run_id, "done_at": p.done_at}
            | {"restores": p.restores, "is_current": current is not None and p.id == current.id}
            for p in store.publications(newest=20)
        ]
        runs = [
            {"run": r.run_id, "state": r.state, "step": r.step, "mode": r.mode, "cut": r.cut, "days": r.days}
            | {"started_at": r.started_at, "error": r.error}
            for r in store.runs()
        ]
    if as_json:
        click.echo(json.dumps({"publications": publications, "runs": runs}, default=str, indent=2))
        return
    show("publications", publications)
    show("runs", runs)


@click.command()
def retention() -> None:
    """Expire old publications, remove the files that nobody needs, ask for the trim of old partials."""
    from spark_jobs.contracts.loader import project_contracts
    from spark_jobs.publication.retention import retain
    from spark_jobs.registry.views import project_views

    with ledger_step() as store:
        done = retain(store, project_views(), project_contracts().event_types, thrift)
        click.echo(f"expired publications: {done.expired or 'none'}; dropped pins: {done.dropped_pins or 'none'}")
        for table, files in done.files.items():
            click.echo(f"{table}: {files} files removed")
        click.echo(f"asked the speed layer to trim partials up to lsn {done.trim_up_to}")
