"""HyperLogLog sketches for ApproxDistinct: Apache DataSketches HLL_8, lgK 12, the bytes that Spark's hll_* read.

lists of values per group (from DuckDB) -> one updatable sketch per group.
"""

from collections.abc import Iterable

import duckdb
import pyarrow as pa
from datasketches import HLL_8, hll_sketch, hll_union

from spark_jobs.definitions.measures.approximate import LG_K


def finished(table: pa.Table, sketches: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Partials as they are stored, in `schema`: lists of values become sketches; nulls are not values."""
    for name in sketches:
        made = pa.array(map(_sketch, table[name].to_pylist()), pa.binary())
        table = table.set_column(table.schema.get_field_index(name), name, made)
    return table.cast(schema)


def _sketch(values: list[int] | list[str] | None) -> bytes:
    """The library hashes the values one by one, about 0.2 us each."""
    sketch = hll_sketch(LG_K, HLL_8)
    update = sketch.update
    for value in values or ():
        if value is not None:
            update(value)
    return bytes(sketch.serialize_updatable())


def union(sketches: Iterable[bytes]) -> bytes:
    """One sketch of all values of `sketches`."""
    together = hll_union(LG_K)
    for sketch in sketches:
        together.update(hll_sketch.deserialize(sketch))
    return bytes(together.get_result(HLL_8).serialize_updatable())


def estimate(sketch: bytes) -> int:
    """Estimated number of values, as Spark's hll_sketch_estimate(hll_union(s, s)): of the union, rounded."""
    together = hll_union(LG_K)
    together.update(hll_sketch.deserialize(sketch))
    together.update(hll_sketch.deserialize(sketch))
    estimated: float = together.get_result(HLL_8).get_estimate()
    return round(estimated)


def add_sketches(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a DuckDB connection the functions that merge and estimate sketches in views' SQL; no sketch gives NULL."""
    blob = connection.list_type("BLOB")
    connection.create_function("hll_union_all", _union_all, [blob], "BLOB", null_handling="special")
    connection.create_function("hll_estimate", estimate, ["BLOB"], "BIGINT")


def _union_all(stored: list[bytes | None] | None) -> bytes | None:
    given = [sketch for sketch in stored or () if sketch is not None]
    return given[0] if len(given) == 1 else union(given) if given else None
