"""Kept plans: they read what is there now, follow other columns, hold no rows afterwards, and are so many at most."""

import gc
import weakref

import duckdb
import pyarrow as pa
import pytest

from spark_jobs.engine import plans
from spark_jobs.engine.plans import Plans
from spark_jobs.expressions import duckdb_session

ADDED = "SELECT sum(cents) AS cents FROM paid"


def plans_of_its_own() -> Plans:
    return Plans(duckdb_session.connect())


def asked(kept: Plans, query: str, **tables: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = kept.ask(query, tables).to_pylist()
    return rows


def cents(*values: object) -> pa.Table:
    return pa.table({"cents": pa.array(values)})


def test_a_plan_reads_the_rows_that_are_there_when_it_runs() -> None:
    kept = plans_of_its_own()
    assert asked(kept, ADDED, paid=cents(1, 2)) == [{"cents": 3}]
    assert asked(kept, ADDED, paid=cents(5)) == [{"cents": 5}]
    assert asked(kept, ADDED, refused=cents(7)) == [{"cents": None}], "what is not there now has no rows"
    assert set(kept.relations) == {"paid", "refused"}


def test_another_type_of_a_column_is_another_plan() -> None:
    kept = plans_of_its_own()
    assert asked(kept, ADDED, paid=cents(1, 2)) == [{"cents": 3}]
    assert asked(kept, ADDED, paid=cents(1.5, 2.5)) == [{"cents": 4.0}]
    assert asked(kept, "SELECT * FROM paid", paid=cents(1)) == [{"cents": 1}]
    assert asked(kept, "SELECT * FROM paid", paid=pa.table({"card": ["a"], "cents": [1]})) == [
        {"card": "a", "cents": 1}
    ]


def test_no_rows_are_held_after_they_were_asked() -> None:
    kept, rows = plans_of_its_own(), cents(1)
    held = weakref.ref(rows)
    asked(kept, ADDED, paid=rows)
    with pytest.raises(duckdb.Error):
        asked(kept, "SELECT cents + 'x' FROM paid", paid=rows)
    del rows
    gc.collect()
    assert held() is None


def test_so_many_statements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST", 3)
    kept = plans_of_its_own()
    for number in range(10):
        assert asked(kept, f"SELECT cents + {number} AS n FROM paid", paid=cents(1)) == [{"n": 1 + number}]
        planned = kept._connection.execute("SELECT count(*) FROM duckdb_prepared_statements()").fetchone()
        assert planned is not None and planned[0] <= 3
