"""The SQL text of a serving view: the batch part at its version, the speed part past the cut, merged, finalised.

view + publication's sources (+ head, of a pin) -> one SELECT with literals only, so that Delta prunes files by them.
"""

from collections.abc import Mapping
from datetime import datetime

from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import aggregates, chained_view, deferred_rows, sequences
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables

SPARK = Dialect.SPARK


def serving_sql(
    view: Served, sources: Mapping[str, Source], views: Views, head: int | None = None, now: datetime | None = None
) -> str:
    """The SELECT of `serving.<view>`, or of a pin where `head` is its last lsn.

    `sources`: view id -> Source, of this view and of those that it is made of or looks up. `now`: the moment of the
    question, for trailing windows and `asked_at`; None where the reader's clock says it.
    """
    if isinstance(view, ChainedView):
        base = chained_view.served_base(view, (one for one in views if one.id in sources))
        return chained_view.answered(view, SPARK, serving_sql(base, sources, views, head, now), now)
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
    new = deferred_rows.counted_now(rows, SPARK, source.horizon, source.hot_keys)
    stored = None
    if source.batch_version is not None and source.results_version is not None:
        rows = _at(tables.batch_rows(view.id), source.batch_version)
        stored = (rows, _at(tables.batch_results(view.id), source.results_version))
    served = sequences.served(view, SPARK, stored, "fresh")
    return f"WITH fresh AS ({new}) {sequences.final(view, SPARK, f'({served})')}"
