"""`tidemark agreement`, `tidemark verify`.

Exit codes: 0 it holds; 1 it does not, or was refused; 2 it could not be looked at.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.step import json_option, ledger_step, refuse
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.store import Store
from spark_jobs.serving.formatting import printable
from spark_jobs.settings import ProjectError, settings

if TYPE_CHECKING:
    from spark_jobs.quality.verification.findings import Law

STATES = {"holds": "green", "breach": "bold red", "unable": "yellow", "nothing yet": "dim", "not looked at": "dim"}
UNABLE = 2
NUMBERS = ("rows", "differing", "checked", "seconds")


@click.command()
@click.option("--run-id", help="Default: the newest audited run.")
@json_option
def agreement(run_id: str | None, as_json: bool) -> None:
    """Where batch and speed differed at the last audit, by cause. Exit code 1 where a row is unexplained."""
    with ledger_step() as store:
        audited = [run for run in store.runs(newest=200) if AGREEMENT in run.summary]
        run = next((run for run in audited if run_id in (None, run.run_id)), None)
    if run is None:
        raise click.ClickException("no such run was audited: `tidemark batch audit` compares batch with speed")
    rows: list[dict[str, Any]] = run.summary[AGREEMENT]
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
@click.option("--all", "whole", is_flag=True, help="Everything, however long; goes on where the last one was cut off.")
@click.option("--last", is_flag=True, help="Look at nothing: show what was found last.")
@click.option("--seed", type=int, help="Chooses the sample; default: the day.")
@click.option("--only", multiple=True, metavar="I3", help="Only this invariant; may be repeated. It is not kept.")
@json_option
def verify(whole: bool, last: bool, seed: int | None, only: tuple[str, ...], as_json: bool) -> None:
    """Look whether the platform keeps its promises: I1, I2, I3, I4 and I7, on what runs now.

    A log of up to TIDEMARK_VERIFY_RECORDS is looked at as a whole, of a longer one a sample that takes a minute.
    What is found is kept in the ledger. Exit code 1 where a promise is broken, 2 where one could not be looked at.
    """
    with ledger_step() as store, _nothing_to_look_at():
        if last:
            code, title, rows = _last(store)
        else:
            code, title, rows = _looked(store, whole, seed, frozenset(map(str.upper, only)))
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str))
    else:
        _show_findings(title, rows)
    sys.exit(code)


@contextmanager
def _nothing_to_look_at() -> Iterator[None]:
    """A file of the project that cannot be used breaks no promise."""
    try:
        yield
    except ProjectError as error:
        refuse(str(error), UNABLE)


Shown = tuple[int, str, list[Mapping[str, Any]]]
"""Exit code, title and rows of a table of findings."""


def _looked(store: Store, whole: bool, seed: int | None, only: frozenset[str]) -> Shown:
    from spark_jobs.ledger.verifications import SAMPLE, WHOLE
    from spark_jobs.quality.verification.findings import Finding
    from spark_jobs.quality.verification.time_limit import TimeLimit
    from spark_jobs.quality.verification.verify import Progress, exit_code
    from spark_jobs.quality.verification.verify import verify as look
    from spark_jobs.registry.views import project_views

    limit = TimeLimit(None if whole else settings().verify_seconds)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the pin is dropped
    seed = datetime.now(UTC).toordinal() if seed is None else seed
    begun = None if only else store.begin_verification(WHOLE if whole else SAMPLE, seed)

    def keep(finding: Finding) -> None:
        if begun is not None:
            store.record_finding(begun.id, finding.key, asdict(finding))

    known = {} if begun is None else {key: Finding(**found) for key, found in begun.findings.items()}
    with _progress(whole) as tell:
        findings = look(store, project_views(), Progress(tell, keep, known), None if whole else seed, limit, only)
    code = exit_code(findings)
    if begun is not None:
        store.finish_verification(begun.id, code)
    return code, "verify" if whole else f"verify, seed {seed}", [asdict(finding) for finding in findings]


def _last(store: Store) -> Shown:
    last = store.last_verification()
    if last is None:
        refuse("nothing was verified yet: `tidemark verify`")
    ended = f"{last.finished_at:%Y-%m-%d %H:%M:%S}" if last.finished_at else "cut off"
    title = f"verify ({last.scope}, seed {last.seed}), begun {last.begun_at:%Y-%m-%d %H:%M:%S}, {ended}"
    return UNABLE if last.exit_code is None else last.exit_code, title, [*last.findings.values()]


@contextmanager
def _progress(is_long: bool) -> Iterator[Callable[[int, int, "Law"], None]]:
    """How far it is: a bar in a terminal; elsewhere lines, if it is long."""
    if sys.stderr.isatty():
        with Bar(*Bar.get_default_columns(), console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("verify")
            yield lambda done, of, law: bar.update(task, completed=done, total=of, description=law.key)
    else:
        yield lambda done, of, law: click.echo(f"{done + 1}/{of} {law.key}", err=True) if is_long else None


def _show_findings(title: str, findings: Iterable[Mapping[str, Any]]) -> None:
    """The findings of `verify`, worst words included."""
    rows, lines = [], []
    for law in findings:
        state, checked = Text(law["state"], STATES[law["state"]]), f"{law['checked']:,} {law['unit']}"
        rows.append((law["invariant"], law["law"], state, checked, f"{law['seconds']:.1f}", printable(law["note"])))
        lines += [f"{law['invariant']}: {breach}" for breach in law["first"]]
        if law["breaches"] > len(law["first"]):
            lines.append(f"{law['invariant']}: ... {law['breaches']:,} in all")
    _show(title, ("", "law", "state", "checked", "seconds", "note"), rows, lines, "red")


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
