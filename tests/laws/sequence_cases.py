"""Thousands of small cases in one DuckDB query each: a case is a key, so that cases cannot meet.

seed -> rows with independent time, tie and arrival (lsn) orders, a cut, a horizon and a quiet instant per case.
"""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import sequences
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.dialect import Dialect, listed
from tests.laws.database import connect
from tests.laws.sequence_views import Subject

D = Dialect.DUCKDB
MOST_ROWS, LSNS = 8, 5
Connection = duckdb.DuckDBPyConnection


def connection(subject: Subject, seed: int, cases: int) -> Connection:
    """Tables `everything` (the rows) and `cases` (key, cut, horizon, instant)."""
    random = np.random.default_rng(seed)
    view = subject.view
    of_case = np.repeat(np.arange(cases), random.integers(1, MOST_ROWS + 1, cases))
    size = len(of_case)
    kinds = random.choice([row.kind for row in view.rows], size)
    columns: dict[str, Any] = {
        "lsn": random.integers(1, LSNS + 1, size),
        "key": _keys(view, of_case),
        "ts": random.integers(0, subject.steps, size) * subject.step,
        "kind": kinds,
        "tie": [f"{tie:08d}" for tie in random.permutation(size)],
    }
    for name, kind in view.columns.items():
        drawn = np.full(size, None, object)
        for row in (row.kind for row in view.rows if name in row.columns):
            values = subject.values.get(f"{row}.{name}") or subject.values[name]
            drawn = np.where(kinds == row, random.choice(np.array(values, dtype=object), size), drawn)
        columns[name] = pa.array(drawn, arrow_of(kind))
    # A horizon before everything is as good as none; half of the cases have that.
    horizons = random.integers(0, subject.steps, cases) * subject.step * random.integers(0, 2, cases)
    per_case = {
        "key": _keys(view, np.arange(cases)),
        "cut": random.integers(0, LSNS + 1, cases),
        "horizon": horizons,
        "instant": random.integers(0, subject.steps + 1, cases) * subject.step,
    }
    made = connect()
    made.register("given_rows", pa.table(columns))
    made.register("given_cases", pa.table(per_case))
    made.execute("CREATE TEMP TABLE everything AS FROM given_rows; CREATE TEMP TABLE cases AS FROM given_cases")
    return made


def _keys(view: SequenceView, numbers: Any) -> pa.Array:
    """Case numbers as keys of the view's kind."""
    return pa.array(numbers, pa.int64()) if view.row_kinds["key"] == "BIGINT" else pa.array(map(str, numbers))


def resolved(subject: Subject, rows: str) -> str:
    return sequences.resolve(subject.view, D, rows)


def rows_where(subject: Subject, condition: str) -> str:
    """A relation of the rows for which `condition` (over the row r and its case c) holds."""
    names = ", ".join(f"r.{name}" for name in listed(["lsn", *subject.view.row_kinds], D).split(", "))
    return f"(SELECT {names} FROM everything r JOIN cases c ON r.key = c.key WHERE {condition})"


def results_differ(con: Connection, subject: Subject, one: str, other: str) -> list[Any]:
    """Keys of the cases for which the queries `one` and `other` do not give the same results."""
    columns = listed(subject.view.result_kinds, D)
    return differing(con, f"SELECT {columns} FROM ({one})", f"SELECT {columns} FROM ({other})")


def differing(con: Connection, one: str, other: str) -> list[Any]:
    sql = f"SELECT key FROM ((({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one})))"
    return [key for (key,) in con.execute(f"{sql} GROUP BY key ORDER BY key").fetchall()]


def described(con: Connection, keys: list[Any]) -> str:
    """The smallest of the failing cases, to be read."""
    if not keys:
        return ""
    (key,) = con.execute(
        "SELECT key FROM everything WHERE key IN (SELECT unnest(?)) GROUP BY key ORDER BY count(*), key LIMIT 1", [keys]
    ).fetchone() or (None,)
    case = con.execute("SELECT * FROM cases WHERE key = ?", [key]).fetchall()
    rows = con.execute("SELECT * FROM everything WHERE key = ? ORDER BY ts, tie", [key]).to_arrow_table().to_pylist()
    return f"{len(keys)} cases, such as {case}:\n" + "\n".join(map(str, rows))
