"""Two answers to the same question, row by row.

two SELECTs of the same columns -> temporary table `differing` -> how many rows, and the first of them in words.
Rows are compared as a bag; a column with a tolerance counts as equal within it, relative to the greater value (or 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from spark_jobs.engine import chained_view
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, listed, quote

D = Dialect.DUCKDB


@dataclass(frozen=True)
class Shape:
    """Columns of an answer: `keys` tell rows apart (several rows may share them), `values` are compared.

    tolerances: column -> tolerance, of floating columns; others are exact. approximate: the same, of estimates.
    """

    keys: Sequence[str]
    values: Sequence[str]
    tolerances: Mapping[str, float] = field(default_factory=dict)
    approximate: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return [*self.keys, *self.values]


def shape_of(view: Served, *, served: bool = False, tolerance: float | None = None) -> Shape:
    """The shape of `LocalAnswers.own`, or of the answer that is `served`.

    tolerance: for DOUBLE values that state none, if two programs did the arithmetic.
    """
    aggregate = chained_view.aggregate_of(view)
    stated = {measure.name: measure.measure.tolerance for measure in aggregate.measures} if aggregate else {}
    values = [name for name in view.answer_kinds if name not in view.served_keys]
    limits = {name: stated.get(name) or (tolerance if view.answer_kinds[name] == "DOUBLE" else None) for name in values}
    tolerances = {name: limit for name, limit in limits.items() if limit is not None}
    if aggregate and not served:
        return Shape(list(aggregate.keys), list(stated), tolerances)
    return Shape(list(view.served_keys), [*values, *view.lookups], tolerances)


@dataclass(frozen=True)
class Comparison:
    """The rows in which two relations differ: keys, `n`, in_left, in_right, and l_/r_ values, in the table `name`."""

    con: duckdb.DuckDBPyConnection
    shape: Shape
    name: str
    rows: int  # compared
    differing: int

    def first(
        self, sides: tuple[str, str], limit: int = 10, where: str = "true", order: str | None = None
    ) -> list[str]:
        """The first differing rows in words: `store_id=3, day=2026-11-21: orders 5 (batch) 6 (speed)`.

        order: SQL, before that of the keys.
        """
        keys = [f"{quote(key, D)} NULLS FIRST" for key in self.shape.keys]
        by = ", ".join([*([order] if order else []), *keys, "n"])
        rows = rows_of(self.con, f"SELECT * FROM {self.name} WHERE {where} ORDER BY {by} LIMIT {limit:d}")
        return [_said(row, self.shape, sides) for row in rows]


def counts_by_cause(attributed: Comparison) -> dict[str | None, int]:
    """Cause -> rows that differ by it; None for those without one. The rows have a column `cause`."""
    query = f"SELECT cause, count(*) FROM {attributed.name} GROUP BY ALL ORDER BY ALL"
    return dict(attributed.con.execute(query).fetchall())


def rows_of(con: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """The rows of a SELECT, each by its columns."""
    cursor = con.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def compare(con: duckdb.DuckDBPyConnection, left: str, right: str, shape: Shape, name: str = "differing") -> Comparison:
    """Compare two SELECTs; what differs is the table `name` of `con`. `right` is cast to the types of `left`."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE left_rows AS SELECT {listed(shape.columns, D)} FROM ({left})")
    con.execute("CREATE OR REPLACE TEMP TABLE right_rows AS SELECT * FROM left_rows WHERE false")
    con.execute(f"INSERT INTO right_rows SELECT {listed(shape.columns, D)} FROM ({right})")
    left_digest, right_digest = _digest(con, "left_rows", shape), _digest(con, "right_rows", shape)
    differing_rows = _none(shape) if left_digest == right_digest else _differing(shape, _doubles(con))
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {differing_rows}")
    [(differing,)] = con.execute(f"SELECT count(*) FROM {name}").fetchall()
    return Comparison(con, shape, name, max(left_digest[0], right_digest[0]), differing)


def _digest(con: duckdb.DuckDBPyConnection, relation: str, shape: Shape) -> tuple[int, ...]:
    """Number of rows, and a digest of them in whatever order; where it agrees, they need not be compared one by one."""
    row = _hash(shape)
    [digest] = con.execute(f"SELECT count(*), sum({row}), bit_xor({row}) FROM {relation}").fetchall()
    return tuple(digest)


def _hash(shape: Shape) -> str:
    return f"hash({listed(shape.columns, D)})"


def _doubles(con: duckdb.DuckDBPyConnection) -> set[str]:
    described = con.execute("DESCRIBE left_rows").fetchall()
    return {row[0] for row in described if row[1] in ("DOUBLE", "FLOAT")}


def _none(shape: Shape) -> str:
    """The columns of `_differing` without a row: to plan that takes longer than to compare small answers."""
    values = [f"{quote(v, D)} AS {quote(f'{side}_{v}', D)}" for v in shape.values for side in ("l", "r")]
    keys = [quote(key, D) for key in shape.keys]
    columns = ", ".join([*keys, "0::BIGINT AS n", "true AS in_left", "true AS in_right", *values])
    return f"SELECT {columns} FROM left_rows WHERE false"


def _differing(shape: Shape, doubles: set[str]) -> str:
    """SELECT of the rows of a Comparison. Only rows whose hash one side has more often are compared one by one."""
    signed = f"SELECT {_hash(shape)} AS row_hash, {{}} AS one FROM {{}}"
    both = " UNION ALL ".join((signed.format("1", "left_rows"), signed.format("-1", "right_rows")))
    few = f"FROM {{}} WHERE {_hash(shape)} IN (SELECT row_hash FROM odd)"
    keys = listed(shape.keys, D)
    order = ", ".join(f"{quote(name, D)} NULLS FIRST" for name in shape.values) or "1"
    number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS n"
    rows = f"SELECT *, {number} FROM (FROM {{}} EXCEPT ALL FROM {{}})"
    join = " AND ".join(f"a.{quote(k, D)} IS NOT DISTINCT FROM b.{quote(k, D)}" for k in shape.keys)
    chosen = [f"coalesce(a.{q}, b.{q}) AS {q}" for q in (quote(key, D) for key in shape.keys)]
    values = [f"a.{quote(v, D)} AS {quote(f'l_{v}', D)}, b.{quote(v, D)} AS {quote(f'r_{v}', D)}" for v in shape.values]
    same = " AND ".join(_equal(name, shape, doubles) for name in shape.values) or "true"
    columns = ", ".join([*chosen, "coalesce(a.n, b.n) AS n", "a.n IS NOT NULL AS in_left",
                         "b.n IS NOT NULL AS in_right", *values])  # fmt: skip
    return (
        f"WITH odd AS (SELECT row_hash FROM ({both}) GROUP BY row_hash HAVING sum(one) <> 0), "
        f"few_left AS ({few.format('left_rows')}), few_right AS ({few.format('right_rows')}), "
        f"a AS ({rows.format('few_left', 'few_right')}), b AS ({rows.format('few_right', 'few_left')}) "
        f"SELECT {columns} FROM a FULL JOIN b ON a.n = b.n AND {join} "
        f"WHERE NOT (a.n IS NOT NULL AND b.n IS NOT NULL AND {same})"
    )


def _equal(name: str, shape: Shape, doubles: set[str]) -> str:
    a, b = f"a.{quote(name, D)}", f"b.{quote(name, D)}"
    exact = f"{a} IS NOT DISTINCT FROM {b}"
    limit = shape.approximate.get(name, shape.tolerances.get(name) if name in doubles else None)
    if limit is None:
        return f"({exact})"
    return f"({exact} OR coalesce(abs({a} - {b}) <= {limit!r} * greatest(1, abs({a}), abs({b})), false))"


def _said(row: dict[str, object], shape: Shape, names: tuple[str, str]) -> str:
    key = ", ".join(f"{name}={row[name]}" for name in shape.keys)
    if row["in_left"] != row["in_right"]:
        side, only = ("l_", names[0]) if row["in_left"] else ("r_", names[1])
        values = ", ".join(f"{name} {row[side + name]}" for name in shape.values)
        return f"{key}: only in {only} ({values})"
    pairs = [(name, row[f"l_{name}"], row[f"r_{name}"]) for name in shape.values]
    told = ", ".join(f"{name} {a} ({names[0]}) {b} ({names[1]})" for name, a, b in pairs if a != b)
    return f"{key}: {told}"
