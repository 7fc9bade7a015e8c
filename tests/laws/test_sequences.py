"""The laws of sequence views: results are right, batch + speed = recomputed, and quiet instants divide a history.

Each example of Hypothesis is a seed for 5,000 cases per view: few rows on a small grid of times, so that ends that are
met exactly, ties and late rows are frequent. docs/sequences.md has the rule; the broken variants prove that these laws
can see.
"""

import itertools
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import listed
from spark_jobs.registry.views import project_views
from tests.depth import examples
from tests.laws.sequence_cases import (
    Connection,
    D,
    connection,
    described,
    differing,
    resolved,
    results_differ,
    rows_where,
)
from tests.laws.sequence_views import SUBJECTS, Subject

CASES = 5_000
seeds = st.integers(0, 2**32 - 1)
each_view = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=list(SUBJECTS))
BUILT = "r.lsn <= c.cut"
FRESH = "r.lsn > c.cut AND r.ts >= c.horizon"


@each_view
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_results_are_those_of_the_oracle(subject: Subject, seed: int) -> None:
    with connection(subject, seed, CASES) as con:
        wrong = oracle_differs(con, subject)
        assert not wrong, described(con, wrong)


def oracle_differs(con: Connection, subject: Subject) -> list[Any]:
    names = [name for name in subject.view.result_kinds if name != "key"]
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in con.sql(resolved(subject, "everything")).to_arrow_table().to_pylist():
        found.setdefault(row["key"], []).append(tuple(row[name] for name in names))
    rows = con.sql("FROM everything ORDER BY key, ts, tie").to_arrow_table().to_pylist()
    wrong = []
    for key, of_key in itertools.groupby(rows, key=lambda row: row["key"]):
        expected = [tuple(result[name] for name in names) for result in subject.oracle(list(of_key))]
        if sorted(map(repr, expected)) != sorted(map(repr, found.get(key, []))):
            wrong.append(key)
    return wrong


@each_view
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_batch_and_speed_at_any_cut_are_the_recomputed_answer(subject: Subject, seed: int) -> None:
    with connection(subject, seed, CASES) as con:
        wrong = served_differs(con, subject)
        assert not wrong, described(con, wrong)


def served_differs(
    con: Connection, subject: Subject, broken: tuple[str, str] = ("", ""), kept: str = "stretch_end >= c.horizon"
) -> list[Any]:
    """Cases where the serving rule is not resolve(all rows). `broken`: text of the rule, and what to put there."""
    view = subject.view
    con.execute(f"CREATE OR REPLACE TEMP TABLE built AS FROM {rows_where(subject, BUILT)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE built_results AS {resolved(subject, 'built')}")
    rows, results = (sql.replace(*broken) for sql in sequences.stretched(view, "built", "built_results"))
    con.execute(f"CREATE OR REPLACE TEMP TABLE results AS {results}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE stretched AS {rows}")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE stored AS SELECT r.* FROM stretched r JOIN cases c ON r.key = c.key WHERE {kept}"
    )
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS FROM {rows_where(subject, FRESH)}")
    served = sequences.served(view, D, ("stored", "results"), "fresh").replace(*broken)
    expected = resolved(subject, rows_where(subject, f"({BUILT}) OR ({FRESH})"))
    return results_differ(con, subject, served, expected)


@each_view
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_re_resolving_what_new_rows_touch_gives_the_tables_of_a_full_build(subject: Subject, seed: int) -> None:
    """Mode `changed`: the tables at the cut and the rows after it make the tables that a full build makes."""
    with connection(subject, seed, CASES) as con:
        wrong = rebuilt_differs(con, subject)
        assert not wrong, described(con, wrong)


def rebuilt_differs(con: Connection, subject: Subject) -> list[Any]:
    view = subject.view
    _tables(con, subject, "old", rows_where(subject, BUILT))
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS FROM {rows_where(subject, 'r.lsn > c.cut')}")
    touched = "(SELECT key, min(ts) AS s0 FROM fresh GROUP BY key) t ON b.key = t.key AND b.stretch_end >= t.s0"
    live = f"(SELECT b.* EXCLUDE (stretch_end) FROM old_rows b SEMI JOIN {touched} UNION ALL FROM fresh)"
    _tables(con, subject, "new", live)
    _tables(con, subject, "full", "everything")
    wrong: set[Any] = set()
    for name, columns in {"rows": [*view.row_kinds, "lsn"], "results": view.result_kinds}.items():
        listed_columns = listed([*columns, "stretch_end"], D)
        merged = f"SELECT b.* FROM old_{name} b ANTI JOIN {touched} UNION ALL FROM new_{name}"
        wrong.update(
            differing(con, f"SELECT {listed_columns} FROM ({merged})", f"SELECT {listed_columns} FROM full_{name}")
        )
    return sorted(wrong)


def _tables(con: Connection, subject: Subject, name: str, rows: str) -> None:
    """<name>_rows and <name>_results with their stretches."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name}_given AS FROM {rows}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name}_resolved AS {resolved(subject, f'{name}_given')}")
    stretched = sequences.stretched(subject.view, f"{name}_given", f"{name}_resolved")
    for part, sql in zip(("rows", "results"), stretched, strict=True):
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name}_{part} AS {sql}")


@each_view
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_a_quiet_instant_divides_the_results(subject: Subject, seed: int) -> None:
    """L1: where nothing of P or resolve(P) crosses r and Q begins at r, resolve(P + Q) = resolve(P) + resolve(Q)."""
    with connection(subject, seed, CASES) as con:
        quiet = quiet_cases(con, subject, "r.ts < c.instant")
        assert len(quiet) > CASES // 20
        wrong = division_differs(con, subject, quiet)
        assert not wrong, described(con, wrong)


def quiet_cases(con: Connection, subject: Subject, condition: str) -> list[Any]:
    """Cases where no interval that begins before the instant reaches it: of rows, nor of results of `condition`."""
    reaches = " ".join(f"WHEN '{row.kind}' THEN {row.reach or 0}" for row in subject.view.rows)
    rows = f"SELECT key, ts AS a, ts + CASE kind {reaches} END AS b FROM {rows_where(subject, condition)}"
    results = f"SELECT key, opened_at AS a, closes_at AS b FROM ({resolved(subject, rows_where(subject, condition))})"
    crossing = f"SELECT s.key FROM ({rows} UNION ALL {results}) s JOIN cases c ON s.key = c.key"
    crossing += " WHERE a < instant AND b >= instant"
    return [key for (key,) in con.execute(f"SELECT key FROM cases WHERE key NOT IN ({crossing})").fetchall()]


def division_differs(con: Connection, subject: Subject, quiet: list[Any]) -> list[Any]:
    """A carried row in force goes with Q, for it is kept until the next of its kind."""
    con.execute("CREATE OR REPLACE TEMP TABLE quiet AS SELECT unnest(?) AS key", [quiet])
    is_quiet = "c.key IN (SELECT key FROM quiet)"
    carried = ", ".join(f"'{row.kind}'" for row in subject.view.rows if row.declaration.carried) or "NULL"
    in_force = (
        f"(r.kind IN ({carried}) AND NOT EXISTS (SELECT 1 FROM everything n WHERE n.key = r.key AND n.kind = r.kind "
        "AND (n.ts, n.tie) > (r.ts, r.tie) AND n.ts < c.instant))"
    )
    before = resolved(subject, rows_where(subject, f"{is_quiet} AND r.ts < c.instant"))
    after = resolved(subject, rows_where(subject, f"{is_quiet} AND (r.ts >= c.instant OR {in_force})"))
    return results_differ(con, subject, resolved(subject, rows_where(subject, is_quiet)), f"{before} UNION ALL {after}")


@each_view
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_what_is_quiet_in_the_whole_is_quiet_in_the_prefix(subject: Subject, seed: int) -> None:
    """L2: where nothing crosses r in the whole, nothing crosses r in the rows before it."""
    with connection(subject, seed, CASES) as con:
        wrong = not_quiet_in_prefix(con, subject)
        assert not wrong, described(con, wrong)


def not_quiet_in_prefix(con: Connection, subject: Subject) -> list[Any]:
    return sorted({*quiet_cases(con, subject, "true")} - {*quiet_cases(con, subject, "r.ts < c.instant")})


@pytest.mark.parametrize("seed", range(12))
def test_equal_spans_are_one_stretch_in_whatever_order_the_engine_sorts_them(seed: int) -> None:
    """A row and its own result cover the same instant; with reach 0 no other row belongs to their stretch."""
    view, count = project_views()["calories_burned"], 400 + 100 * seed
    moments = np.random.default_rng(seed).permutation(count) * 1_000
    rows = {"lsn": [1] * count, "key": moments % 97, "ts": moments, "kind": ["measurement"] * count}
    rows |= {"tie": [str(place) for place in range(count)], **dict.fromkeys(view.columns, [None] * count)}
    with duckdb.connect(config={"threads": 1}) as con:
        con.register("live", pa.table(rows, schema=pa.schema([("lsn", pa.int64()), *view.partial_schema])))
        con.execute(f"CREATE TEMP TABLE results AS {sequences.resolve(view, D, 'live')}")
        made, resulted = sequences.stretched(view, "live", "results")
        assert con.sql(f"SELECT count(*), count(*) FILTER (stretch_end <> ts) FROM ({made})").fetchall() == [(count, 0)]
        assert con.sql(f"SELECT count(*) FROM ({resulted}) WHERE stretch_end <> opened_at").fetchall() == [(0,)]
