"""Two answers are compared row by row, and the table of what differs has one shape whether anything does or not."""

import pytest

from spark_jobs.expressions import duckdb_session
from spark_jobs.serving.compare import Shape, compare

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
