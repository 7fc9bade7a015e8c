"""`tidemark batch audit`, `tidemark agreement`, `tidemark verify`.

Exit codes: 0 it holds; 1 it does not, or a step was refused; 2 it could not be looked at; 3 the audit stops the run.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.step import ledger_step, run_option
from spark_jobs.orchestration.interface import AUDIT_FAILED
from spark_jobs.serving.formatting import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command()
@run_option
@click.option("--accept", metavar="REASON", help="Accept rows that differ from speed for no known cause, and say why.")
def audit(run_id: str, accept: str | None) -> None:
    """Hold the run's new versions against their expectations and against the speed layer.

    Exit code 3 stops the run: nothing of it is published, and what is published keeps serving.
    """
    from spark_jobs.quality.gate import audit as hold
    from spark_jobs.registry.views import project_views
    from spark_jobs.storage.session import batch_session

    with ledger_step(run_id) as store, ExitStack() as started:

        def session() -> "SparkSession":
            spark = batch_session("tidemark-audit")
            started.callback(spark.stop)
            return spark

        passed = hold(cache(session), store, project_views(), run_id, click.echo, accept)
        verdict = store.audit(run_id)
    docs = verdict.docs_url if verdict else None
    if passed:
        click.echo(f"run {run_id} passed" + (f" with {verdict.warnings} warnings: {docs}" if verdict else ""))
        return
    click.echo(f"run {run_id} did not pass; the current publication keeps serving. Data Docs: {docs}", err=True)
    sys.exit(AUDIT_FAILED)


@click.command()
@click.option("--run-id", help="Default: the newest audited run.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def agreement(run_id: str | None, as_json: bool) -> None:
    """Where batch and speed differed at the last audit, by cause. Exit code 1 where a row is unexplained."""
    from spark_jobs.quality.reconciliation.agreement import UNEXPLAINED

    with ledger_step() as store:
        audited = [run for run in store.runs(newest=200) if "agreement" in run.summary]
        run = next((one for one in audited if run_id in (None, one.run_id)), None)
    if run is None:
        raise click.ClickException("no such run was audited: `tidemark batch audit` compares batch with speed")
    rows: list[dict[str, Any]] = run.summary["agreement"]
    if as_json:
        click.echo(json.dumps({"run": run.run_id, "views": rows}, indent=2))
    else:
        _show_agreement(run.run_id, rows)
    sys.exit(1 if any(row["causes"].get(UNEXPLAINED) for row in rows) else 0)


def _show_agreement(run_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=f"batch against speed, run {run_id}", title_justify="left")
    for name in ("view", "lsn", "rows", "differing", "cause"):
        table.add_column(name, justify="right" if name in ("rows", "differing") else "left")
    for row in rows:
        causes = "; ".join(f"{count:,} {cause}" for cause, count in row["causes"].items())
        span = f"{row['old_cut'] + 1}-{row['new_cut']}" if row["new_cut"] > row["old_cut"] else "none new"
        table.add_row(row["view"], span, f"{row['rows']:,}", f"{row['differing']:,}", causes)
    console = _console()
    console.print(table)
    for row in rows:
        for named in row["unexplained"]:
            console.print(Text(printable(f"{row['view']}: {named}")))


@click.command()
@click.option("--only", multiple=True, metavar="I3", help="Only this invariant; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def verify(only: tuple[str, ...], as_json: bool) -> None:
    """Look whether the platform keeps its promises: I1, I2, I3, I4 and I7, on what runs now.

    Exit code 1 where one is broken, 2 where one could not be looked at.
    """
    from spark_jobs.quality.verification.verify import exit_code
    from spark_jobs.quality.verification.verify import verify as look
    from spark_jobs.registry.views import project_views

    progress = Console(stderr=True)
    with ledger_step() as store, progress.status("verify") as shown:
        found = look(store, project_views(), lambda text: shown.update(text), frozenset(one.upper() for one in only))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2, default=str))
    else:
        show_findings([asdict(one) for one in found])
    sys.exit(exit_code(found))


def _console() -> Console:
    """As wide as the terminal, or as needed where there is none."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def show_findings(found: Iterable[Mapping[str, Any]]) -> None:
    """The findings of `verify`, worst words included."""
    table = Table(title="verify", title_justify="left")
    for name in ("", "law", "state", "checked", "seconds", "note"):
        table.add_column(name, justify="right" if name in ("checked", "seconds") else "left")
    colours = {"holds": "green", "breach": "bold red", "unable": "yellow", "nothing yet": "dim"}
    lines = []
    for one in found:
        state = Text(str(one["state"]), colours[str(one["state"])])
        checked = f"{one['checked']:,} {one['unit']}"
        table.add_row(one["invariant"], one["law"], state, checked, f"{one['seconds']:.1f}", printable(one["note"]))
        lines += [f"{one['invariant']}: {breach}" for breach in one["first"]]
        if one["breaches"] > len(one["first"]):
            lines.append(f"{one['invariant']}: ... {one['breaches']:,} in all")
    console = _console()
    console.print(table)
    for line in lines:
        console.print(Text(printable(line), "red"))
