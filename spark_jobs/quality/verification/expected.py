"""What readers should see: the answers of the project's oracle, or the views recomputed from the log.

log + producer ledger -> records -> oracle -> rows; where the oracle lacks the view: log -> recompute -> rows
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.row_types import Partition
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.quality import recompute
from spark_jobs.quality.recompute import Recomputed
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables


class Oracle(Protocol):
    """A project's own answers. approximate: view -> column -> relative error to allow, where the view estimates."""

    @property
    def approximate(self) -> Mapping[str, Mapping[str, float]]: ...

    def expected(self, view: str) -> pa.Table:
        """The rows that a view must serve, with its columns, in no order. Raises KeyError for a view unknown to it."""


class MakeOracle(Protocol):
    """What the setting `oracle` names.

    records: a Parquet file of all records up to the head, as their producers sent them; outcome and reason where the
    producer wrote them down. until: per partition the first offset past the head. now: the moment of the question.
    log: the master log, whose rows of the kind `schema` say from which lsn on a schema is in force. cut: up to it
    refused records are read again by the schemas of the cut.
    """

    def __call__(
        self, *, records: Path, until: Mapping[Partition, int], now: datetime, log: ds.Dataset, cut: int
    ) -> Oracle: ...


@dataclass(frozen=True)
class Expected:
    """The rows of one view, who says so, and how far its estimates may be off."""

    rows: pa.Table
    by: str
    approximate: Mapping[str, float] = field(default_factory=dict)


@dataclass
class SecondWay:
    """Answers to the questions of `asked`, made of the log by others. folder: for files, removed later."""

    asked: LocalAnswers
    folder: Path
    is_large: bool = False

    def expected(self, view: Served) -> Expected:
        cut = self.cut if self.is_large else self.asked.sources[serving_plan.stored_of(view, self.asked).id].cut
        if oracle_of_project() is not None:
            oracle = self._oracle_at(cut)
            with suppress(KeyError):
                return by_oracle(oracle, view)
        facts = self.facts_at(cut)
        answer = serving_plan.answer(view, Recomputed(facts, self.asked.in_force, self.asked.now))
        return Expected(facts.sql(answer).to_arrow_table(), "recomputing")

    @property
    def cut(self) -> int:
        """The newest one. A view that was held back, or had no answer in what a rollback restored, has another; of a
        large log this one stands for all, if nothing came in force since the `oldest`.
        """
        return max(source.cut for source in self.asked.sources.values())

    @property
    def oldest(self) -> int:
        """The oldest cut of what is built."""
        return min((source.cut for source in self.asked.sources.values() if source.versions), default=self.cut)

    @cached_property
    def _oracle_at(self) -> Callable[[int], Oracle]:
        """Cut -> the project's oracle over all records up to the head."""
        file = self.folder / "records.parquet"
        write_records(self.log, self.asked.head, file)
        return cache(lambda cut: self.oracle_over(file, cut))

    def oracle_over(self, records: Path, cut: int) -> Oracle:
        """The oracle of a project that has one, over the records of a file."""
        make, now = oracle_of_project(), self.asked.now
        assert make is not None and now is not None  # of a pin
        return make(records=records, until=until(self.log, self.asked.head), now=now, log=self.log, cut=cut)

    @cached_property
    def log(self) -> ds.Dataset:
        return duckdb_reader.dataset(tables.MASTER_LOG)

    @cached_property
    def facts_at(self) -> Callable[[int], duckdb.DuckDBPyConnection]:
        """Cut -> facts of everything up to the head; built ones are read by the schemas of the cut.

        Of a large log the built ones are those that are stored, as other checks hold them to the log by and by.
        """
        head = self.asked.head
        return cache(lambda cut: recompute.upon(cut, head) if self.is_large else recompute.facts(head, cut=cut))


def by_oracle(oracle: Oracle, view: Served) -> Expected:
    """Raises KeyError for a view that it does not know."""
    return Expected(oracle.expected(view.name), "the oracle", oracle.approximate.get(view.name, {}))


def oracle_of_project() -> MakeOracle | None:
    """What the setting names; the project's own modules can be imported too."""
    if settings().oracle is None:
        return None
    module, _, attribute = str(settings().oracle).partition(":")
    if str(settings().project) not in sys.path:
        sys.path.append(str(settings().project))
    make: MakeOracle = getattr(import_module(module), attribute)
    return make


def ledger_files() -> list[str]:
    """What producers on this machine wrote down."""
    return sorted(map(str, settings().producer_ledger.glob("*/[0-9]*.parquet")))


def write_records(log: ds.Dataset | pa.Table, head: int, to: Path) -> None:
    """Write what the oracle reads: each record of the log, or of a part of it, up to head, by its producer's own copy
    where there is one.
    """
    columns = listed(row_types.RECORD.names, Dialect.DUCKDB)
    records = f"SELECT {columns} FROM log WHERE kind = 'record' AND lsn <= {head:d}"
    if ledger := ledger_files():
        records = (
            f"SELECT l.* REPLACE (CASE WHEN s.outcome IS NULL THEN l.key ELSE s.key END AS key, "
            f"CASE WHEN s.outcome IS NULL THEN l.value ELSE s.value END AS value), s.outcome, s.reason "
            f"FROM ({records}) l LEFT JOIN read_parquet({ledger!r}) s "
            'ON l.topic = s.topic AND l.partition = s.partition AND l."offset" = s."offset"'
        )
    with duckdb_reader.connect({"log": log}) as con:
        duckdb_reader.write_file(records, con, to)


def until(log: ds.Dataset, head: int) -> Mapping[Partition, int]:
    """Per partition the first offset past lsn `head`."""
    of = (ds.field("lsn") == head) & (ds.field("kind") == row_types.BATCH_ROW)
    [row] = log.to_table(["batch"], filter=of).to_pylist()
    return {(part["topic"], part["partition"]): part["until_offset"] for part in row["batch"]["ranges"]}
