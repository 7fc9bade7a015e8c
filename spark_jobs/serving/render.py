"""Which views can be served from a set of sources, each in one version, and the SQL text of a serving view.

view + publication's sources (+ head, of a pin) -> one SELECT: the batch part at its version, the speed part past the
cut, merged, finalised. It has literals only, so that Delta prunes files by them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import sequences, serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served, stored_of
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables

SPARK = Dialect.SPARK


def ready(views: Views, sources: Mapping[str, Source], promoted: Mapping[str, int]) -> dict[str, Source]:
    """One source per view: that of the promoted version, else of the earliest that is there."""
    chosen: dict[str, View] = {}
    for view in sorted((view for view in views if view.id in sources), key=lambda view: view.version):
        if view.name not in chosen or promoted.get(view.name) == view.version:
            chosen[view.name] = view
    return {view.id: sources[view.id] for view in chosen.values()}


def servable(views: Views, sources: Mapping[str, Source]) -> list[Served]:
    """The views of `sources` and those chained to them, if every view that they look up is there."""
    every: list[Served] = [*(view for view in views if view.id in sources), *views.chained]
    return [view for view in every if _is_servable(view, {other.name for other in views if other.id in sources})]


def _is_servable(view: Served, names: set[str]) -> bool:
    if isinstance(view, ChainedView):
        return _is_servable(view.base, names)
    return {view.name, *view.looked_up} <= names


def serving_sql(
    view: Served, sources: Mapping[str, Source], views: Views, head: int | None = None, now: datetime | None = None
) -> str:
    """The SELECT of `serving.<view>`, or of a pin where `head` is its last lsn.

    `sources`: view id -> Source, of this view and of those that it is made of or looks up. `now`: the moment of the
    question, for trailing windows and `asked_at`; None for the reader's clock.
    """
    return serving_plan.answer(view, SparkTables(views, sources, head, now))


def shows(text: str, view: Served) -> bool:
    """Whether the text of a serving view is of this version of it."""
    return f"'{stored_of(view).column}'" in text


def continues(text: str, view: Served, source: Source) -> bool:
    """Whether the source goes on where a serving view's text is: the same version, and no build that is gone."""
    was_built = any(_named(table) in text for table in stored_of(view).tables)
    return shows(text, view) and (source.batch_version is not None or not was_built)


@dataclass(frozen=True)
class SparkTables:
    """The warehouse's tables by their names in Spark's catalog, each at the version of its source."""

    views: Views
    sources: Mapping[str, Source]
    head: int | None
    now: datetime | None
    dialect: Dialect = SPARK

    @property
    def in_force(self) -> Iterable[View]:
        return [view for view in self.views if view.id in self.sources]

    def built(self, view: View) -> list[str]:
        return [_at(table, version) for table, version in self.sources[view.id].tables(view)]

    def added(self, view: View) -> str:
        """The partials with their struct taken apart; none where nothing past the cut is asked for."""
        source, columns = self.sources[view.id], view.partial_schema.names
        column = quote(view.column, SPARK)
        fields = ", ".join(f"{column}.{quote(name, SPARK)} AS {quote(name, SPARK)}" for name in columns)
        if self.head is not None and self.head <= source.cut:
            where = "false"  # the optimizer leaves out what merges them
        else:
            upper = f" AND lsn <= {self.head:d}" if self.head is not None else ""
            where = f"view = '{view.column}' AND lsn > {source.cut:d}{upper}"
        rows = f"SELECT {fields} FROM {tables.SPEED_PARTIALS} WHERE {where}"
        return sequences.counted_now(rows, SPARK, source.horizon, source.hot_keys)


def _at(table: str, version: int) -> str:
    return f"{_named(table)}{version:d}"


def _named(table: str) -> str:
    schema, name = table.split(".")
    return f"{schema}.{quote(name, SPARK)} VERSION AS OF "
