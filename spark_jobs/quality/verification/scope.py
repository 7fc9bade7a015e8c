"""What one verification looks at: everything, or a sample that takes a minute at any size.

size of the log, seed -> Scope: ranges of lsns, and of each view about so many keys, every row of which is looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, takewhile
from random import Random

import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.engine import chained_view
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, micros, quote
from spark_jobs.expressions.kinds import Kind
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.quality.verification.findings import Skipped
from spark_jobs.settings import settings
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables

LSNS_AT_ONCE = 5_000
"""The longest range of lsns in a sample: a log may have years of micro-batches without a record."""
MOST_UNBUILT = 5
"""How many times `verify_records` there may be past the cut: they land while a run builds, too."""
Lsns = tuple[int, int]
"""The first and the last of a range of lsns."""


@dataclass(frozen=True)
class OneOf:
    """One of so many records of each partition, by their offsets; all where `many` is 1."""

    many: int = 1
    rest: int = 0

    @property
    def expression(self) -> ds.Expression | None:
        """Whether a record is one; None for all of them."""
        offset = ds.field("offset")
        whole = pc.multiply(pc.divide(offset, self.many), self.many)
        return None if self.many == 1 else pc.subtract(offset, whole) == self.rest

    @property
    def condition(self) -> str:
        """The same in SQL."""
        return f'"offset" % {self.many:d} = {self.rest:d}'

    @property
    def note(self) -> str:
        return "" if self.many == 1 else f"one of {self.many} records"


EACH = OneOf()


@dataclass(frozen=True)
class Scope:
    """ranges: in order, without overlap. seed: chooses the keys of a sample; None: everything is looked at.

    is_large: the log is too long to have all of it in memory at once.
    """

    ranges: tuple[Lsns, ...]
    seed: int | None = None
    is_large: bool = False

    def up_to(self, cut: int) -> "Scope":
        return replace(self, ranges=tuple((first, min(last, cut)) for first, last in self.ranges if first <= cut))

    def of(self, relation: str, columns: str = "*") -> str:
        """SELECT of the relation's rows in the ranges; each is a scan of its own, which files without them skip."""
        scans = (
            f"SELECT {columns}, {part} AS part FROM {relation} WHERE lsn >= {first:d} AND lsn <= {last:d}"
            for part, (first, last) in enumerate(self.ranges)
        )
        return " UNION ALL ".join(scans) if self.ranges else f"SELECT {columns}, 0 AS part FROM {relation} WHERE false"

    def one_of(self, rows: int) -> int:
        """Every how many of so many rows are in a sample; 1 where all are looked at."""
        return 1 if self.seed is None else rows // settings().verify_records + 1

    def some_of(self, first: int, last: int) -> OneOf:
        """Which records of a range are looked at one by one; a micro-batch may have many times a sample's."""
        many = self.one_of(2 * sum(records for _, records in coverage.counted(first, last)))
        return OneOf(many, (self.seed or 0) % many)

    def condition(self, view: Served, source: Source, d: Dialect, names: dict[str, str] | None = None) -> str:
        """SQL: whether a row of the view is of a key in the sample, the same rows in both engines.

        names: key of the answer -> its column here, where that is another one.
        """
        wanted = settings().verify_keys
        rows = 0 if self.seed is None else _rows(view, source)
        texts = [_text((names or {}).get(name, name), kind, d) for name, kind in sampled_by(view).items()]
        if rows <= wanted or not texts:
            return "true"
        key = " || '/' || ".join([f"'{self.seed}'", *texts])
        return f"md5({key}) < '{int(0xFFFFFFFF * wanted / rows):08x}'"


def chosen(head: int, seed: int) -> Scope:
    """A sample: the newest records, and as many from somewhere before. A short log is looked at as a whole."""
    if duckdb_reader.row_count(tables.MASTER_LOG) <= settings().verify_records:
        return everything(head)
    newest = _last(head)
    somewhere = [_from(Random(seed).randint(1, newest - 1), newest - 1)] if newest > 1 else []
    return Scope((*somewhere, (newest, head)), seed, is_large=True)


def everything(head: int) -> Scope:
    return Scope(((1, head),), is_large=duckdb_reader.row_count(tables.MASTER_LOG) > settings().verify_records)


def past(cut: int) -> datetime | None:
    """When so many records had landed past the cut as a sample looks at; None where there are fewer."""
    total, computed = 0, coverage.covered(cut)
    for lsn, records in coverage.records(cut).items():
        total += records
        if total > settings().verify_records and lsn in computed:
            return computed[lsn].at
    return None


def refuse_much(cut: int, head: int) -> None:
    """Raises Skipped where more records have landed past the cut than a sample can read."""
    many = sum(coverage.records(cut, head).values())
    if many > MOST_UNBUILT * settings().verify_records:
        raise Skipped(f"{many:,} records are not built yet, more than a sample reads: after the next build, or `--all`")


def refuse_facts_ahead(store: Store, cut: int) -> None:
    """Raises Skipped where the stored facts say more of records up to the cut than was said by then.

    A later run has read them by newer schemas and revisions, and is not what is served.
    """
    decoded, history = store.decoded_cut(), log_reader.read_schema_history()
    if history.within(cut, decoded) or history.revisions.within(cut, decoded):
        said = f"the facts are read by the schemas and revisions of lsn {decoded}, what is served by those of {cut}"
        raise Skipped(f"{said}: after the next publication")


def portions(scope: Scope) -> Iterator[Lsns]:
    """The ranges in pieces that fit into memory: of a large log those up to about 500,000 records."""
    for first, last in scope.ranges:
        while scope.is_large and scope.seed is None and first <= last:
            until = _grown(first, last, tables.ROWS_PER_FILE)
            yield first, until
            first = until + 1
        if first <= last:
            yield first, last


def sampled_by(view: Served) -> Mapping[str, Kind]:
    """The keys by which a view is sampled: those that its stored rows have too; of a ranking, what it is ranked per."""
    if isinstance(view, ChainedView):
        return {}
    kinds = {name: kind for name, kind in view.served_keys.items() if kind != "DOUBLE"}
    if isinstance(view, AggregateView):
        names = view.top.per if view.top else view.keys
        return {name: kind for name, kind in kinds.items() if name in names and name in view.keys}
    return kinds


def stored_names(view: View) -> dict[str, str]:
    """Key of the answer -> its column in the view's stored rows."""
    return {} if isinstance(view, AggregateView) else {view.key: "key"}


def _rows(view: Served, source: Source) -> int:
    """How many rows the view has stored, at least."""
    built = source.tables(chained_view.stored_of(view))
    return duckdb_reader.row_count(*built[0]) if built else 0


def _text(column: str, kind: Kind, d: Dialect) -> str:
    value = micros(quote(column, d), d) if kind == "TIMESTAMP" else quote(column, d)
    return f"coalesce({value} || '', '')"


def _from(first: int, last: int) -> Lsns:
    return first, _grown(first, min(last, first + LSNS_AT_ONCE - 1), settings().verify_records // 2)


def _grown(first: int, last: int, most: int) -> int:
    """The last lsn of a range from `first` on, up to `last`, that holds so many records at most; or one lsn."""
    total = 0
    for lsn, records in coverage.counted(first, last):
        total += records
        if total > most:
            return max(first, lsn - 1)
    return last


def _last(head: int) -> int:
    """The first lsn of the newest records."""
    counts = coverage.records(max(0, head - LSNS_AT_ONCE), head)
    totals = accumulate(reversed([*counts.values()]))
    few = takewhile(lambda total: total <= settings().verify_records // 2, totals)
    return head - max(0, len([*few]) - 1)
