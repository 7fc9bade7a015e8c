"""The views for people: the list, one view in full, the table of the README.

views + sources in force + coverage -> Answer; view -> definition, columns and SQL as text.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import sqlglot

from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.definitions.spec import Trailing
from spark_jobs.engine.chained_view import ASKED_AT, ChainedView, Served, stored_of
from spark_jobs.engine.partials import of_facts
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger.source import UNBUILT, Source, with_unbuilt
from spark_jobs.registry.views import Views
from spark_jobs.serving.dbt_sources import columns
from spark_jobs.serving.formatting import Answer
from spark_jobs.serving.render import serving_sql, shows
from spark_jobs.settings import settings
from spark_jobs.storage.coverage import Covered, holes

BEGIN, END = "<!-- views: `tidemark view table` writes this -->\n", "<!-- end of views -->\n"
_KINDS = {"view": "STRING", "kind": "STRING", "of": "STRING", "grain": "STRING", "batch": "BIGINT", "cut": "BIGINT",
          "covered": "STRING", "fresh_to": "STRING", "owner": "STRING", "answers": "STRING"}  # fmt: skip


def kind(view: Served) -> str:
    """The sort of view: an aggregate with its window, a sequence, row by row, or the view that it is chained to."""
    if isinstance(view, ChainedView):
        return f"chained {kind(view.aggregate)} of {view.base.name}"
    if isinstance(view, SequenceView):
        return "sequence" if view.declaration.resolve else "row by row"
    window = type(view.window.declaration).__name__.lower() if view.window else ""
    return " ".join(filter(None, [window, "top" if view.top else "", "aggregate"]))


def grain(view: Served) -> str:
    """What a row of the answer stands for: its keys."""
    return ", ".join(view.served_keys)


def listed(views: Views, sources: Mapping[str, Source], coverage: Covered, named: Mapping[str, str]) -> Answer:
    """A row per view. `named`: the serving views that readers have, and their texts.

    covered: the lsns past the cut that the speed layer has computed. fresh_to: when the newest of them was committed.
    """
    head = max(coverage, default=0)
    rows = [
        _listed(view, sources.get(stored_of(view).id, UNBUILT), coverage, head, shows(named.get(view.name, ""), view))
        for view in (*views, *views.chained)
    ]
    return Answer(tuple(_KINDS), tuple(_KINDS.values()), rows)


def _listed(view: Served, source: Source, coverage: Covered, head: int, is_shown: bool) -> tuple[Any, ...]:
    missing = holes(source.cut, head, coverage, stored_of(view).column)
    upto = missing[0] - 1 if missing else max(head, source.cut)
    at: datetime | None = coverage[upto].at if upto in coverage else None
    covered = f"{source.cut + 1}-{upto}" if upto > source.cut else "nothing past the cut"
    covered += f", lacks {missing[0]}" if missing else ""
    covered += "" if is_shown else ": filling, not served yet" if missing else ": not served"
    return (
        view.id, kind(view), ", ".join(view.event_types), grain(view), source.batch_version, source.cut,
        covered, at.isoformat(timespec="seconds") if at else None,
        view.owner, view.description,
    )  # fmt: skip


def shown(view: Served, views: Views, sources: Mapping[str, Source]) -> Iterator[tuple[str, str]]:
    """Title and text of each part: the definition, the columns, the SQL of its steps."""
    yield "definition", (settings().views_folder / f"{view.id}.py").read_text("utf-8").rstrip()
    yield "columns", "\n".join(f"{name:24} {said.get('data_type', '')}" for name, said in columns(view).items())
    if not isinstance(view, ChainedView):
        partials = of_facts(view, {event_type: f"facts.{event_type}" for event_type in view.event_types})
        yield "partials, in both layers (DuckDB)", _pretty(partials, Dialect.DUCKDB)
    known = with_unbuilt(views.by_id, sources)
    yield "serving (Spark)", _pretty(serving_sql(view, known, views), Dialect.SPARK)


def _pretty(sql: str, dialect: Dialect) -> str:
    """The statement on several lines; unchanged if the printer does not know it."""
    try:
        return str(sqlglot.parse_one(sql, read=dialect.value).sql(dialect.value, pretty=True))
    except sqlglot.ParseError:
        return sql


def readme_table(views: Views) -> str:
    """The README's table, Markdown, of the newest version of each view."""
    head = "| view | kind | a row per | answers |\n|---|---|---|---|\n"
    rows = [
        f"| `{name}` | {kind(view)} | {grain(view)}{', now' if is_of_the_moment(view) else ''} | {view.description} |\n"
        for name, view in sorted(views.served.items())
    ]
    return head + "".join(rows)


def is_of_the_moment(view: Served) -> bool:
    """Whether the answer depends on when it is asked for."""
    if isinstance(view, ChainedView):
        return ASKED_AT in view.aggregate.used_columns or is_of_the_moment(view.base)
    window = view.window if isinstance(view, AggregateView) else None
    return window is not None and isinstance(window.declaration, Trailing)


def readme(views: Views, text: str) -> str:
    """The README's text with the table of these views. ValueError if it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no place for the views: {BEGIN.strip()} ... {END.strip()}")
    return before + BEGIN + readme_table(views) + END + after
