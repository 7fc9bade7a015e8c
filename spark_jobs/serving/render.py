"""The SQL text of a serving view: the batch part at its version, the speed part past the cut, merged, finalised.

view + publication's sources (+ head, of a pin) -> one SELECT with literals only, so that Delta prunes files by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_jobs import aggregates, over, sequences, tables, waiting
from spark_jobs.dialect import Dialect, listed, quote
from spark_jobs.over import OverView, Served
from spark_jobs.registry import Views
from spark_jobs.view import AggregateView, SequenceView, View

SPARK = Dialect.SPARK


@dataclass(frozen=True)
class Source:
    """What a publication takes a view from. None: never built, so that the speed part is all there is.

    batch_version: of `batch.<view>` or `batch.<view>_rows`; results_version: of `batch.<view>_results`; cut: the last
    lsn in the build; horizon: speed rows before it wait for the next build (sequences), and so do those of the
    `capped` keys, which are named by `waiting.digest`.
    """

    batch_version: int | None
    results_version: int | None
    cut: int
    horizon: datetime | None
    capped: tuple[str, ...] = ()


def serving_sql(
    view: Served, sources: Mapping[str, Source], views: Views, head: int | None = None, now: datetime | None = None
) -> str:
    """The SELECT of `serving.<view>`, or of a pin where `head` is its last lsn.

    `sources`: view id -> Source, of this view and of those that it is over or looks up. `now`: the moment of the
    question, for trailing windows and `asked_at`; None where the reader's clock says it.
    """
    if isinstance(view, OverView):
        base = over.served_base(view, (one for one in views if one.id in sources))
        return over.answered(view, SPARK, serving_sql(base, sources, views, head, now), now)
    if isinstance(view, SequenceView):
        return _sequence(view, sources[view.id], head)
    lookups = {}
    for column, lookup in view.lookups.items():
        other = _published(lookup.view, sources, views)
        key, found = listed(other.keys, SPARK), quote(lookup.column, SPARK)
        answer = serving_sql(other, sources, views, head, now)
        lookups[column] = f"(SELECT {key} AS looked_up, {found} AS found FROM ({answer}))"
    return _aggregate(view, sources[view.id], head, lookups, now)


def _published(name: str, sources: Mapping[str, Source], views: Views) -> AggregateView:
    """The newest version of a view that the publication has."""
    versions = [view for view in views if view.name == name and view.id in sources]
    newest = max(versions, key=lambda view: view.version)
    assert isinstance(newest, AggregateView)  # checked when the views were loaded
    return newest


def _aggregate(
    view: AggregateView, source: Source, head: int | None, lookups: Mapping[str, str], now: datetime | None
) -> str:
    columns = view.partial_schema.names
    union = _speed(view, columns, source.cut, head)
    if source.batch_version is not None:
        built = _at(tables.batch(view.id), source.batch_version)
        union = f"SELECT {listed(columns, SPARK)} FROM {built} UNION ALL {union}"
    return aggregates.final(view, SPARK, f"({aggregates.merged(view, SPARK, f'({union})')})", lookups, now)


def _speed(view: View, columns: list[str], cut: int, head: int | None) -> str:
    """The view's partials of the speed layer, with their struct taken apart."""
    fields = ", ".join(f"{quote(view.column, SPARK)}.{quote(name, SPARK)} AS {quote(name, SPARK)}" for name in columns)
    upper = f" AND lsn <= {head:d}" if head is not None else ""
    return f"SELECT {fields} FROM {tables.SPEED_PARTIALS} WHERE view = '{view.column}' AND lsn > {cut:d}{upper}"


def _at(table: str, version: int) -> str:
    schema, name = table.split(".")
    return f"{schema}.{quote(name, SPARK)} VERSION AS OF {version:d}"


def _sequence(view: SequenceView, source: Source, head: int | None) -> str:
    rows = _speed(view, list(view.row_kinds), source.cut, head)
    new = waiting.counting(rows, SPARK, source.horizon, source.capped)
    stored = None
    if source.batch_version is not None and source.results_version is not None:
        rows = _at(tables.batch_rows(view.id), source.batch_version)
        stored = (rows, _at(tables.batch_results(view.id), source.results_version))
    served = sequences.served(view, SPARK, stored, "fresh")
    return f"WITH fresh AS ({new}) {sequences.final(view, SPARK, f'({served})')}"
