"""One pass over the master log: records to facts, rejects and duplicates.

master.log (the run's lsns) -> mapInArrow(decode) -> one wide relation, persisted -> relations per kind. The layers
share `decode`; what differs is de-duplication, here over the whole history.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window

from spark_jobs import contracts, tables
from spark_jobs.contracts import Contracts
from spark_jobs.decode import decode

COORDINATES = [name for name, _ in tables.COORDINATES]
REJECT = "reject"

# Stands beside each struct, so that counting and comparing need not open it.
HEAD = pa.schema([("event_type", pa.string()), ("day", pa.date32()), ("identity", pa.binary()), *tables.COORDINATES])


@dataclass(frozen=True)
class Decoded:
    """`rows`: HEAD and one struct, a fact's or the reject's; `losers`: coordinates and identity of duplicates."""

    rows: DataFrame
    losers: DataFrame

    def facts(self, event_type: str) -> DataFrame:
        """The facts of one type, with their day."""
        mine = self.rows.where(F.col("event_type") == event_type)
        unique = mine.join(self.losers.select(COORDINATES), COORDINATES, "left_anti")
        return unique.select(f"{_column(event_type)}.*", "day")

    def rejects(self) -> DataFrame:
        return self.rows.where(F.col("event_type").isNull()).select(f"{REJECT}.*")


def decoded(records: DataFrame, history: DataFrame | None) -> Decoded:
    """Decode `records` (columns of tables.RECORD). `history`: the `identity` of every fact known before, if any.

    The rows are persisted; `Decoded.rows.unpersist()` when done. The losers are checkpointed, as Spark would plan a
    persisted relation over the history anew with every append to a table of facts.
    """
    known = contracts.load()
    schema = _schema(known)
    rows = records.mapInArrow(_task(schema), from_arrow_schema(schema, prefer_timestamp_ntz=False)).persist()
    losers = _losers(rows.where(F.col("event_type").isNotNull()).select(HEAD.names).drop("day"), history)
    return Decoded(rows, losers.localCheckpoint())


def records_of(spark: SparkSession, where: str) -> DataFrame:
    """The landed records of the lsns that match."""
    log = spark.table(tables.MASTER_LOG).where("kind = 'record'").where(where)
    return log.select([field.name for field in tables.RECORD])


def _column(event_type: str) -> str:
    return f"fact_{event_type}"


def _schema(known: Contracts) -> pa.Schema:
    facts = [pa.field(_column(c.event_type), pa.struct(list(plain(c.fact_schema)))) for c in known]
    return pa.schema([*HEAD, *facts, pa.field(REJECT, pa.struct(list(tables.REJECT)))])


def plain(schema: pa.Schema) -> pa.Schema:
    """The schema as Spark can have it: it knows no binary of fixed size."""
    return pa.schema([pa.field(f.name, pa.binary()) if pa.types.is_fixed_size_binary(f.type) else f for f in schema])


def _task(schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = contracts.load()
        for batch in batches:
            if batch.num_rows:
                found = decode(pa.Table.from_batches([batch]).cast(tables.RECORD), known)
                for event_type, facts in found.facts.items():
                    yield from _laid_out(facts, event_type, _column(event_type), schema)
                yield from _laid_out(found.rejects, None, REJECT, schema)

    return run


def _laid_out(found: pa.Table, event_type: str | None, column: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in the wide schema: HEAD, the one struct, all others null."""
    size = found.num_rows
    if not size:
        return
    fields = list(schema.field(column).type)
    arrays = [found[field.name].combine_chunks().cast(field.type) for field in fields]
    here = {
        "event_type": pa.array([event_type] * size, pa.string()),
        column: pa.StructArray.from_arrays(arrays, fields=fields),
        **{name: found[name].combine_chunks() for name in COORDINATES},
    }
    if event_type is not None:
        here |= {"identity": found["identity"].combine_chunks().cast(pa.binary())}
        here |= {"day": found["occurred_at"].combine_chunks().cast(pa.timestamp("us")).cast(pa.date32())}
    columns = [here.get(field.name, pa.nulls(size, field.type)) for field in schema]
    yield from pa.table(columns, schema=schema).to_batches()


def _losers(facts: DataFrame, history: DataFrame | None) -> DataFrame:
    """Coordinates, event type and identity of every fact that is not the first of its identity.

    Only identities that occur twice, or in the history, are compared; that is one hash aggregate over 16-byte keys.
    """
    suspects = facts.groupBy("identity").count().where("count > 1").select("identity", F.lit(False).alias("is_known"))
    if history is not None:
        before = history.join(facts.select("identity"), "identity", "left_semi")
        suspects = suspects.unionByName(before.select("identity", F.lit(True).alias("is_known")))
    suspects = suspects.groupBy("identity").agg(F.max("is_known").alias("is_known"))
    order = Window.partitionBy("identity").orderBy(*COORDINATES)
    ranked = facts.join(suspects, "identity").withColumn("place", F.row_number().over(order))
    return ranked.where("is_known OR place > 1").drop("is_known", "place")
