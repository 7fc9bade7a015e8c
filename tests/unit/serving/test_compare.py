"""Two answers are compared row by row, and the table of what differs has one shape whether anything does or not."""

from pathlib import Path

import pytest

from spark_jobs.expressions import duckdb_session
from spark_jobs.serving.compare import Shape, compare
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader

LEFT = "SELECT 1::BIGINT AS k, DATE '2026-01-05' AS day, 2::BIGINT AS n_orders, 0.5::DOUBLE AS mean, ['a'] AS tags"
VALUES = [("n_orders", "BIGINT"), ("mean", "DOUBLE"), ("tags", "VARCHAR[]")]
SHAPE = Shape(["k", "day"], ["n_orders", "mean", "tags"], {"mean": 1e-9})


@pytest.mark.parametrize(("right", "differing"), [(LEFT, 0), (LEFT.replace("2::", "3::"), 1)])
def test_the_columns_of_what_differs_are_the_same_for_no_rows(right: str, differing: int) -> None:
    con = duckdb_session.connect()
    found = compare(con, LEFT, right, SHAPE)
    assert (found.rows, found.differing) == (1, differing)
    described = [(name, kind) for name, kind, *_ in con.execute("DESCRIBE differing").fetchall()]
    sides = [(f"{side}_{name}", kind) for name, kind in VALUES for side in ("l", "r")]
    keys = [("k", "BIGINT"), ("day", "DATE"), ("n", "BIGINT"), ("in_left", "BOOLEAN"), ("in_right", "BOOLEAN")]
    assert described == [*keys, *sides]


def test_a_value_within_its_tolerance_is_no_difference() -> None:
    nearly = LEFT.replace("0.5::", "0.5000000000001::")
    assert compare(duckdb_session.connect(), LEFT, nearly, SHAPE).differing == 0


def test_a_row_that_is_there_more_often_is_a_difference() -> None:
    left = "SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (1, 'b'), (2, NULL)) AS rows(k, v)"
    right = "SELECT * FROM (VALUES (1, 'a'), (1, 'b'), (1, 'b'), (2, NULL)) AS rows(k, v)"
    found = compare(duckdb_session.connect(), left, right, Shape(["k"], ["v"], {}))
    assert found.first(("left", "right")) == ["k=1: v a (left) b (right)"]


def test_answers_that_memory_does_not_hold_are_compared_on_disk(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_CHECK_MEMORY_MB", "64")
    settings.cache_clear()
    con = duckdb_reader.connect({})
    rows = "SELECT range % 10 AS key, range AS n, repeat('x', 100) || range AS text FROM range(500_000)"
    wrong = f"SELECT key, n, CASE WHEN n % 100_000 = 7 THEN 'y' ELSE text END AS text FROM ({rows})"
    found = compare(con, rows, wrong, Shape(["key"], ["n", "text"], {}))
    assert (found.rows, found.differing) == (500_000, 5)
    assert [*(settings().tmp_dir / "duckdb").iterdir()], "it was more than memory holds"
