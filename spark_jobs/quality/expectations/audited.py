"""What the gate audits of a run: its new facts, its completeness, its batch tables, each with its suite.

run, what it built -> (Suite, the Relation at the exact version) one by one --> a pandas frame through DuckDB and
delta-rs, or a Spark DataFrame where there are too many rows. What is only counted comes from the files.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.batch import identity_index
from spark_jobs.batch.build_units import keyed_files
from spark_jobs.batch.decode_step import AGAIN
from spark_jobs.batch.key_ranges import apart
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import partials
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.quality.expectations import suites
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.fact_slices import in_days
from spark_jobs.storage.lsn_ranges import Range, joined, predicate, within

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

DUCKDB = Dialect.DUCKDB
AT_ONCE = 500_000
"""Rows that an audit has in memory at once."""
MANY_IDENTITIES = 5_000_000
"""Facts of all history, above which a run is held to a part of their identities: they are hashes, read one and all."""
WRITTEN_AT_ONCE = 100_000
PART = "audited_part"
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Stored:
    """Rows of a table at a version (None: the newest). `where`: a predicate that both dialects know.

    files: addresses of some of the version's files, whose rows alone are meant; None: all.
    """

    table: str
    version: int | None = None
    where: str = "TRUE"
    files: tuple[str, ...] | None = None

    def frames(self, suite: Suite) -> "Iterator[pd.DataFrame] | None":
        """The rows in frames of about AT_ONCE at most, in which those are together that the suite judges together.

        None where there are more, and only the whole table can be judged.
        """
        source = self._dataset()
        con = _database().cursor()
        con.register("source", source)
        [(rows,)] = con.execute(f"SELECT count(*) FROM source WHERE {self.where}").fetchall()
        wanted = _listed(suite.columns, source.schema, DUCKDB)
        if rows > AT_ONCE and suite.together is None:
            return None
        if rows > AT_ONCE and suite.together:
            parts = rows // AT_ONCE + 1
            part = f"hash({listed(suite.together, DUCKDB)}) % {parts:d} AS {PART}"
            return _apart(con, f"SELECT {wanted}, {part} FROM source WHERE {self.where}", parts)
        return _in_order(con, f"SELECT {wanted} FROM source WHERE {self.where}")

    def rows(self, spark: "SparkSession", suite: Suite) -> "DataFrame":
        wanted = _listed(suite.columns, self._dataset().schema, Dialect.SPARK)
        if self.files is not None:
            return spark.sql(
                f"SELECT {wanted} FROM {{files}} WHERE {self.where}", files=spark.read.parquet(*self.files)
            )
        version = duckdb_reader.version(self.table) if self.version is None else self.version
        source = f"{tables.by_path(self.table)} VERSION AS OF {version:d}"
        return spark.sql(f"SELECT {wanted} FROM {source} WHERE {self.where}")

    def _dataset(self) -> ds.Dataset:
        whole = duckdb_reader.dataset((self.table, self.version))
        return whole if self.files is None else ds.dataset(list(self.files), schema=whole.schema, format="parquet")


def _in_order(con: duckdb.DuckDBPyConnection, query: str) -> "Iterator[pd.DataFrame]":
    """The rows of a query, a frame at a time; at least one, and one alone for AT_ONCE rows, whatever their files."""
    reader = con.sql(query).to_arrow_reader(min(AT_ONCE, WRITTEN_AT_ONCE))
    batches = [*_about(AT_ONCE, reader)]
    yield as_frame(pa.Table.from_batches(batches, reader.schema))
    while batches := [*_about(AT_ONCE, reader)]:
        yield as_frame(pa.Table.from_batches(batches))


def _about(rows: int, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The next batches, until they have so many rows; fewer at the end."""
    while rows > 0 and (batch := next(reader, None)) is not None:
        rows -= batch.num_rows
        yield batch


def _apart(con: duckdb.DuckDBPyConnection, query: str, parts: int) -> "Iterator[pd.DataFrame]":
    """The rows of a query by their PART: through files, as reading all rows once for each part is quadratic."""
    settings().tmp_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="audit-", dir=settings().tmp_dir) as folder:
        files = [Path(folder, f"{part}.arrow") for part in range(parts)]
        reader = con.sql(query).to_arrow_reader(WRITTEN_AT_ONCE)
        shape = reader.schema.remove(reader.schema.get_field_index(PART))
        with ExitStack() as opened:
            writers = [opened.enter_context(pa.ipc.new_file(file, shape, options=COMPRESSED)) for file in files]
            for batch in reader:
                for part, writer in enumerate(writers):
                    writer.write(batch.filter(pc.equal(batch[PART], part)).select(shape.names))
        for file in files:
            with pa.memory_map(str(file)) as mapped:
                yield as_frame(pa.ipc.open_file(mapped).read_all())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all suites, each with a cursor of its own: to open one takes longer than most of their queries."""
    return duckdb_reader.connect({})


def _listed(columns: Iterable[str], schema: pa.Schema, dialect: Dialect) -> str:
    """Bytes as hexadecimal text, which Great Expectations can compare and show."""
    quoted = ((quote(name, dialect), schema.field(name).type) for name in columns)
    return ", ".join(f"hex({name}) AS {name}" if pa.types.is_binary(kind) else name for name, kind in quoted)


@dataclass(frozen=True)
class Counted:
    """A few rows that were counted elsewhere."""

    count: Callable[[], pa.Table]

    def frames(self, suite: Suite) -> "Iterator[pd.DataFrame]":
        return iter([as_frame(self.count().select(list(suite.columns)))])

    def rows(self, spark: "SparkSession", suite: Suite) -> "DataFrame":
        [frame] = self.frames(suite)
        return spark.createDataFrame(frame)


Relation = Stored | Counted
"""A suite's columns of rows: as `frames` in memory (None where they would not fit), or in Spark.

Both methods raise NoTable where the table or its version is gone.
"""


def as_frame(table: pa.Table) -> "pd.DataFrame":
    """A frame in which integers and booleans stay what they are beside nulls: as floats, keys past 2**53 may merge.

    Without nulls they are NumPy's, which Great Expectations compares column by column and not value by value.
    """
    import pandas as pd

    exact = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    columns = {
        name: values.to_pandas(types_mapper=exact.get if values.null_count else None)
        for name, values in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(columns, copy=False)


def audited(
    run: Run,
    views: Views,
    built: Mapping[str, Source],
    old: Mapping[str, Source],
    after: int,
    days: list[str],
    *,
    whole: bool = False,
) -> Iterator[tuple[Suite, Relation]]:
    """Every suite of a run, and the relation that it checks.

    `after`: the published cut; `days`: those whose facts were decoded again, as the ranges of lsns in the run's summary
    were, of which every record is counted once more. What was audited before is left out: a
    view whose version stays, an event type without new facts (the suite of completeness finds missing ones); and unless
    the `whole` is wanted, files that the published version has too, but for a sample.
    """
    again = ((first, last) for first, last in run.summary.get(AGAIN, ()))
    decoded = joined([*again, *([(after + 1, run.cut)] if run.cut > after else [])])
    yield suites.of_completeness(), Counted(partial(_completeness, decoded))
    yield suites.of_identities(), Counted(partial(_repeated, decoded, None if whole else run.cut))
    for contract in project_contracts():
        if _has_new(tables.facts(contract.event_type), after, days):
            suite = suites.of_facts(contract, run.cut, datetime.now(UTC))
            yield suite, Stored(suite.table, where=f"lsn > {after:d} OR {in_days(days)}")
    new = [view for view in views if built[view.id].versions != old.get(view.id, UNBUILT).versions]
    full = _with_facts(new, run.cut)
    for view in new:
        made = suites.of_view(view, must_have_rows=view.id in full)
        before = old.get(view.id, UNBUILT).versions or (None,) * len(made)
        for suite, version, base in zip(made, built[view.id].versions, before, strict=True):
            some = None if whole or base is None else _changed(suite, view.ordered_by, version, base)
            yield suite, Stored(suite.table, version, files=some)


def _changed(suite: Suite, keys: tuple[str, ...], version: int, base: int) -> tuple[str, ...] | None:
    """The files that version `base` does not have, with what must be judged together with them, and one of the others.

    None where that is every file, or none is new: a table without rows is no answer.
    """
    if suite.together is None:
        return None
    known = {file.address for file in keyed_files(suite.table, base, keys)}
    files = keyed_files(suite.table, version, keys)
    groups = [group for _, group in apart(keys, files)] if suite.together else [[file] for file in files]
    new = [group for group in groups if any(file.address not in known for file in group)]
    others = [file for group in groups if group not in new for file in group]
    if not new or not others:
        return None
    sample = others[version % len(others)]
    return (*(file.address for group in new for file in group), sample.address)


def _has_new(table: str, after: int, days: list[str]) -> bool:
    """Whether the table has rows that no published run has audited. One that is missing is not passed over."""
    if not duckdb_reader.exists(table):
        return True
    of = (ds.field("lsn") > after) | ds.field("day").isin(pa.array(days).cast(pa.date32()))
    return bool(duckdb_reader.dataset(table).head(1, columns=["lsn"], filter=of).num_rows)


def _facts_of_records() -> dict[str, str]:
    """Event type -> the table of its facts."""
    return {one.event_type: tables.facts(one.event_type) for one in project_contracts() if not one.is_outcome}


def _completeness(decoded: Sequence[Range]) -> pa.Table:
    """Per topic: how many records landed at these lsns, and what became of them."""
    lsns = f"({predicate(decoded)})"
    ends = [*_facts_of_records().values(), tables.QUARANTINE, tables.DUPLICATES]
    parts = [f"SELECT topic, TRUE AS landed FROM log WHERE kind = 'record' AND {lsns}"]
    parts += [f"SELECT topic, FALSE AS landed FROM {quote(table, DUCKDB)} WHERE {lsns}" for table in ends]
    counts = "count_if(landed) AS records, count_if(NOT landed) AS accounted_for"
    con = duckdb_reader.connect({"log": tables.MASTER_LOG, **{table: table for table in ends}})
    return con.sql(f"SELECT topic, {counts} FROM ({' UNION ALL '.join(parts)}) GROUP BY topic").to_arrow_table()


def _repeated(decoded: Sequence[Range], seed: int | None) -> pa.Table:
    """Per event type: how many facts of these lsns have the identity of a fact of another lsn.

    With a seed, of an index of more than MANY_IDENTITIES one bucket is looked at, another by the next seed.
    """
    indexed = duckdb_reader.exists(tables.IDENTITIES)
    known = duckdb_reader.dataset(tables.IDENTITIES) if indexed else ds.dataset(identity_index.INDEX.empty_table())
    some = ds.scalar(True)
    if seed is not None and known.count_rows() > MANY_IDENTITIES:
        some = identity_index.of_bucket(seed % identity_index.BUCKETS)
    con = duckdb_reader.connect({})
    con.execute("CREATE TEMP TABLE fresh (event_type VARCHAR, identity BLOB, lsn BIGINT)")
    for event_type, table in _facts_of_records().items():
        if duckdb_reader.exists(table):
            con.register("rows", duckdb_reader.dataset(table).filter(within(decoded) & some))
            con.execute("INSERT INTO fresh SELECT ?, identity, lsn FROM rows", [event_type])
    con.register("known", known.filter(some))
    return con.sql("""
        WITH alike AS MATERIALIZED (SELECT identity, lsn FROM known SEMI JOIN fresh USING (identity))
        SELECT event_type, count(*) AS repeated FROM fresh JOIN alike USING (identity) WHERE alike.lsn <> fresh.lsn
        GROUP BY event_type""").to_arrow_table()


def _with_facts(views: Collection[View], cut: int) -> set[str]:
    """Ids of the views that have at least one fact to show."""
    types = {event_type for view in views for event_type in view.event_types}
    facts_of = {name: f"(SELECT * FROM {quote(name, DUCKDB)} WHERE lsn <= {cut:d})" for name in types}
    con = duckdb_reader.connect({event_type: tables.facts(event_type) for event_type in types})
    counted = {view.id: partials.counted(view, facts_of) for view in views}
    return {view_id for view_id, facts in counted.items() if con.execute(f"FROM ({facts}) LIMIT 1").fetchone()}
