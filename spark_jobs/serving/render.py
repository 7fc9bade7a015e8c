"""The SQL text of a serving view: the batch part at its version, the speed part past the cut, merged, finalised.

view + publication's sources (+ head, of a pin) -> one SELECT with literals only, so that Delta prunes files by them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import deferred_rows, serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables

SPARK = Dialect.SPARK


def serving_sql(
    view: Served, sources: Mapping[str, Source], views: Views, head: int | None = None, now: datetime | None = None
) -> str:
    """The SELECT of `serving.<view>`, or of a pin where `head` is its last lsn.

    `sources`: view id -> Source, of this view and of those that it is made of or looks up. `now`: the moment of the
    question, for trailing windows and `asked_at`; None for the reader's clock.
    """
    return serving_plan.answer(view, SparkTables(views, sources, head, now))


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
        """The partials with their struct taken apart."""
        source, columns = self.sources[view.id], view.partial_schema.names
        column = quote(view.column, SPARK)
        fields = ", ".join(f"{column}.{quote(name, SPARK)} AS {quote(name, SPARK)}" for name in columns)
        upper = f" AND lsn <= {self.head:d}" if self.head is not None else ""
        where = f"view = '{view.column}' AND lsn > {source.cut:d}{upper}"
        rows = f"SELECT {fields} FROM {tables.SPEED_PARTIALS} WHERE {where}"
        return deferred_rows.counted_now(rows, SPARK, source.horizon, source.hot_keys)


def _at(table: str, version: int) -> str:
    schema, name = table.split(".")
    return f"{schema}.{quote(name, SPARK)} VERSION AS OF {version:d}"
