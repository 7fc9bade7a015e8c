"""The relation `built` set against an answer of the speed layer; some keys at a time where they have many rows.

`built`, LocalAnswers --compare--> what differs. A sequence view is resolved by windows over all rows of a key, and all
that one query sorts has to be in DuckDB's memory; for other answers it does with what there is.
"""

from collections.abc import Callable, Collection, Mapping

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.serving.compare import Comparison, Shape, compare
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings

D = Dialect.DUCKDB
MIB = 2**20
BYTES_OF_ROW = 4096
"""Of `check_memory_mb`, for each row of a sequence view that is resolved at once; 920 were too few for `trades`."""


def compare_by_keys(
    speed: LocalAnswers,
    view: View,
    answer: Callable[[LocalAnswers, View], str],
    shape: Shape,
    name: str = "differing",
    keys: tuple[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Compare `built` of `speed.con` with `answer(speed, view)`; what differs is its table `name`.

    keys: a relation of the stored keys that are meant, and stored key -> its name in the answer; None: all rows.
    """
    con, left = speed.con, "FROM built b"
    if keys is not None:
        relation, names = keys
        left += f" SEMI JOIN {relation} k ON {same('b', 'k', names.values(), names)}"
        speed = speed.with_keys(view, relation)
    at_once = settings().check_memory_mb * MIB // BYTES_OF_ROW
    if not isinstance(view, SequenceView) or _count(con, left) <= at_once:
        return compare(con, left, answer(speed, view), shape, name)
    parts = _in_parts(speed, view, shape, left, at_once)
    of_part = f"FROM built b SEMI JOIN part k ON b.{quote(shape.keys[0], D)} = k.key"
    compared = differing = 0
    for made, part in enumerate(parts):
        con.execute("CREATE OR REPLACE TEMP TABLE part AS SELECT key FROM parts WHERE part = ?", [part])
        some = speed.with_keys(view, "part", _bounds(con))
        found = compare(con, of_part, answer(some, view), shape, "of_part")
        into = f"INSERT INTO {name}" if made else f"CREATE OR REPLACE TEMP TABLE {name} AS"
        con.execute(f"{into} FROM of_part")
        compared, differing = compared + found.rows, differing + found.differing
    return Comparison(con, shape, name, compared, differing)


def _count(con: duckdb.DuckDBPyConnection, rows: str) -> int:
    [(count,)] = con.execute(f"SELECT count(*) FROM ({rows})").fetchall()
    return int(count)


def _in_parts(speed: LocalAnswers, view: SequenceView, shape: Shape, left: str, at_once: int) -> list[int]:
    """Make the table `parts`, of each key and its part: ranges of keys, as files hold them. The parts' numbers."""
    served = quote(shape.keys[0], D)
    relations = [*speed.built(view), f"({speed.added(view)})"]
    known = " UNION ALL ".join(f"SELECT key, 0 AS rows FROM {relation}" for relation in relations)
    counted = f"{known} UNION ALL SELECT {served} AS key, count(*) AS rows FROM ({left}) GROUP BY ALL"
    speed.con.execute(
        "CREATE OR REPLACE TEMP TABLE parts AS "
        f"SELECT key, CAST(sum(rows) OVER (ORDER BY key) // {at_once:d} AS BIGINT) AS part "
        f"FROM (SELECT key, sum(rows) AS rows FROM ({counted}) GROUP BY key)"
    )
    return [part for (part,) in speed.con.execute("SELECT DISTINCT part FROM parts ORDER BY part").fetchall()]


def _bounds(con: duckdb.DuckDBPyConnection) -> ds.Expression | None:
    """What holds for the keys of `part`; None for floating ones, as NaN has its place in DuckDB's order alone."""
    [found] = con.sql("SELECT min(key) AS least, max(key) AS greatest FROM part").to_arrow_table().to_batches()
    least, greatest = (found[name][0] for name in ("least", "greatest"))
    if pa.types.is_floating(least.type):
        return None
    key = ds.field("key")
    return (key >= least) & (key <= greatest)


def same(left: str, right: str, names: Collection[str], there: Collection[str] | None = None) -> str:
    """SQL: whether these columns agree; `there`: their names on the right, where those are others."""
    pairs = zip(names, names if there is None else there, strict=True)
    equal = (f"{left}.{quote(one, D)} IS NOT DISTINCT FROM {right}.{quote(other, D)}" for one, other in pairs)
    return " AND ".join(equal) or "true"
