"""What came of a batch run, view by view: tables in a terminal, the same as a page, JSON for programs.

ledger -> a row per view: how it was built, its rows and seconds of work, where it differs from speed and why, what
readers see of it. The page is runs/<id>/index.html in the Data Docs; beside it runs/views.html has each view's SQL.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from spark_jobs.cli import page
from spark_jobs.cli.page import plain
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Build, Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.ledger.turns import TAKEN_OVER
from spark_jobs.orchestration.interface import RUNS, SQL_PAGE
from spark_jobs.settings import settings


def outcome(store: Store, run_id: str) -> dict[str, Any]:
    """The run, its verdict and its views. LedgerError where no run is called so."""
    if (run := store.run(run_id)) is None:
        raise LedgerError(f"no run is called {run_id}; `tidemark batch status` lists them")
    audit, published = store.audit(run_id), store.publication_of(run_id)
    verdict = None if audit is None else f"{'passed' if audit.passed else 'refused'}, {audit.warnings} warnings"
    return {
        **{name: getattr(run, name) for name in ("run_id", "state", "step", "error", "mode", "cut", "days")},
        "taken_over": run.summary.get(TAKEN_OVER, []),
        **{name: run.summary.get(name) for name in ("facts", "quarantined", "duplicates")},
        "audit": verdict,
        "docs_url": None if audit is None else audit.docs_url,
        "publication": None if published is None else published.id,
        "views": [*_views(run, store.builds(run_id), None if published is None else published.id)],
    }


def _views(run: Run, builds: Mapping[str, Build], publication: int | None) -> Iterator[dict[str, Any]]:
    compared = {of["view"]: of for of in run.summary.get(AGREEMENT, ())}
    held_back = run.summary.get("held_back") or {}
    for view_id, build in sorted(builds.items()):
        agreement = compared.get(view_id, {})
        shown = None if publication is None else f"publication {publication}"
        readers = f"held back: no partials at lsn {held_back[view_id]}" if view_id in held_back else shown
        yield {
            "view": view_id,
            **{name: getattr(build, name) for name in ("mode", "row_count", "seconds", "batch_version")},
            "differing": agreement.get("differing"),
            "causes": agreement.get("causes", {}),
            "readers": readers,
        }


def printed(found: Mapping[str, Any]) -> None:
    Console().print(*_tables(found))


def written(store: Store, run_id: str) -> Path:
    """The run's page, and that of the views' SQL, made anew."""
    found, runs = outcome(store, run_id), settings().data_docs / RUNS
    texts = (
        part for name, sql in sorted(store.serving_sql().items()) for part in (Text(f"\n{name}", "bold"), plain(sql))
    )
    page.write(runs / SQL_PAGE, Group(Text("what each serving view asks"), *texts))
    sql = Text("their SQL", style=f"link ../{SQL_PAGE}")
    return page.write(runs / run_id / "index.html", Group(*_tables(found), sql))


def _tables(found: Mapping[str, Any]) -> Iterator[Table]:
    about = Table(title=f"run {found['run_id']}", show_header=False, title_justify="left")
    for name in found:
        if name != "views":
            about.add_row(name, plain(_text(found[name])))
    yield about
    rows = [*map(_row, found["views"])]
    views = Table(*(rows[0] if rows else ["nothing is built yet"]), title="views", title_justify="left")
    for row in rows:
        views.add_row(*map(plain, row.values()))
    yield views


def _row(view: Mapping[str, Any]) -> dict[str, str]:
    names = {"view": "view", "mode": "built", "row_count": "rows", "seconds": "seconds of work"}
    causes = "; ".join(f"{rows:,} {cause}" for cause, rows in view["causes"].items())
    numbers = {title: _text(view[name]) for name, title in names.items()}
    return {**numbers, "differ from speed": causes or _text(view["differing"]), "readers see": _text(view["readers"])}


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case list():
            return ", ".join(value)
        case float():
            return f"{value:,.1f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
