"""`tidemark agreement`, `tidemark verify`.

Exit codes: 0 it holds; 1 it does not, or was refused; 2 it could not be looked at.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.step import json_option, ledger_step
from spark_jobs.serving.formatting import printable

STATES = {"holds": "green", "breach": "bold red", "unable": "yellow", "nothing yet": "dim"}
NUMBERS = ("rows", "differing", "checked", "seconds")


@click.command()
@click.option("--run-id", help="Default: the newest audited run.")
@json_option
def agreement(run_id: str | None, as_json: bool) -> None:
    """Where batch and speed differed at the last audit, by cause. Exit code 1 where a row is unexplained."""
    from spark_jobs.quality.reconciliation.agreement import UNEXPLAINED

    with ledger_step() as store:
        audited = [run for run in store.runs(newest=200) if "agreement" in run.summary]
        run = next((run for run in audited if run_id in (None, run.run_id)), None)
    if run is None:
        raise click.ClickException("no such run was audited: `tidemark batch audit` compares batch with speed")
    rows: list[dict[str, Any]] = run.summary["agreement"]
    if as_json:
        click.echo(json.dumps({"run": run.run_id, "views": rows}, indent=2))
    else:
        _show_agreement(run.run_id, rows)
    sys.exit(1 if any(row["causes"].get(UNEXPLAINED) for row in rows) else 0)


def _show_agreement(run_id: str, views: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for view in views:
        causes = "; ".join(f"{count:,} {cause}" for cause, count in view["causes"].items())
        span = f"{view['old_cut'] + 1}-{view['new_cut']}" if view["new_cut"] > view["old_cut"] else "none new"
        rows.append((view["view"], span, f"{view['rows']:,}", f"{view['differing']:,}", causes))
    lines = [f"{view['view']}: {row}" for view in views for row in view["unexplained"]]
    _show(f"batch against speed, run {run_id}", ("view", "lsn", "rows", "differing", "cause"), rows, lines)


@click.command()
@click.option("--only", multiple=True, metavar="I3", help="Only this invariant; may be repeated.")
@json_option
def verify(only: tuple[str, ...], as_json: bool) -> None:
    """Look whether the platform keeps its promises: I1, I2, I3, I4 and I7, on what runs now.

    Exit code 1 where one is broken, 2 where one could not be looked at.
    """
    from spark_jobs.quality.verification.verify import exit_code
    from spark_jobs.quality.verification.verify import verify as look
    from spark_jobs.registry.views import project_views

    progress = Console(stderr=True)
    with ledger_step() as store, progress.status("verify") as shown:
        findings = look(store, project_views(), lambda text: shown.update(text), frozenset(map(str.upper, only)))
    rows = [asdict(finding) for finding in findings]
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str))
    else:
        _show_findings(rows)
    sys.exit(exit_code(findings))


def _show_findings(findings: Iterable[Mapping[str, Any]]) -> None:
    """The findings of `verify`, worst words included."""
    rows, lines = [], []
    for law in findings:
        state, checked = Text(law["state"], STATES[law["state"]]), f"{law['checked']:,} {law['unit']}"
        rows.append((law["invariant"], law["law"], state, checked, f"{law['seconds']:.1f}", printable(law["note"])))
        lines += [f"{law['invariant']}: {breach}" for breach in law["first"]]
        if law["breaches"] > len(law["first"]):
            lines.append(f"{law['invariant']}: ... {law['breaches']:,} in all")
    _show("verify", ("", "law", "state", "checked", "seconds", "note"), rows, lines, "red")


def _show(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], lines: Iterable[str], style: str = ""
) -> None:
    """A table and what there is to say below it; as wide as the terminal, or as needed where there is none."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in NUMBERS else "left")
    for row in rows:
        table.add_row(*row)
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)
    for line in lines:
        console.print(Text(printable(line), style))
