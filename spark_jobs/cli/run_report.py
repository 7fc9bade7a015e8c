"""What came of a batch run, view by view: tables in a terminal, the same as a page, JSON for programs.

ledger -> a row per view: how it was built, its rows and seconds of work, where it differs from speed and why, what
readers see of it. The page is runs/<id>/index.html in the Data Docs; beside it runs/views.html has each view's SQL.
"""

import html
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spark_jobs.cli.step import show
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Build, Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.ledger.turns import TAKEN_OVER
from spark_jobs.orchestration.interface import RUNS, SQL_PAGE
from spark_jobs.settings import settings

STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{border:1px solid #ccc;padding:.3em .7em;text-align:left;vertical-align:top}pre{white-space:pre-wrap}"
)


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
    show(f"run {found['run_id']}", [{"what": name, "is": _text(found[name])} for name in found if name != "views"])
    show("views", [*map(_row, found["views"])])


def written(store: Store, run_id: str) -> Path:
    """The run's page, and that of the views' SQL, made anew."""
    found = outcome(store, run_id)
    about = [{"what": name, "is": _text(found[name])} for name in found if name not in ("views", "docs_url")]
    page = _save(
        settings().data_docs / RUNS / run_id / "index.html",
        f"Run {run_id}",
        [_table(about), _table(map(_row, found["views"]), link=f"../{SQL_PAGE}#")],
    )
    sql = sorted(store.serving_sql().items())
    parts = [f"<h2 id={name}>{name}</h2><pre>{html.escape(text)}</pre>" for name, text in sql]
    _save(settings().data_docs / RUNS / SQL_PAGE, "What each serving view asks", parts)
    return page


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


def _table(rows: Iterable[Mapping[str, str]], link: str = "") -> str:
    """An HTML table; with a link, the first column leads there and to its own name."""
    known = list(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (known[0] if known else ["nothing is built yet"]))
    lines = ("".join(f"<td>{cell}</td>" for cell in _cells(row, link)) for row in known)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cells(row: Mapping[str, str], link: str) -> list[str]:
    first, *others = map(html.escape, row.values())
    return [f'<a href="{link}{first}">{first}</a>' if link else first, *others]


def _save(page: Path, title: str, parts: Iterable[str]) -> Path:
    page.parent.mkdir(parents=True, exist_ok=True)
    head = f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
    page.write_text(f"{head}<h1>{html.escape(title)}</h1>{''.join(parts)}", "utf-8")
    return page
