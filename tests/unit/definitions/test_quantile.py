"""Buckets of quantiles: the same integers in every engine, and never off by more than 1/128."""

import duckdb
import pytest

from spark_jobs.definitions.measures.approximate import ApproxQuantile
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.expressions.error import Refused

EDGES = sorted({sign * (2**e + d) for e in range(63) for d in (-1, 0, 1) for sign in (1, -1)} | {2**63 - 1, -(2**63)})


def bucket(value: int) -> int:
    """The middle of the value's bucket, by arithmetic."""
    size = abs(value)
    if size < 128 or value == -(2**63):
        return value
    width = 1 << (size.bit_length() - 7)
    return (size // width * width + width // 2) * (1 if value > 0 else -1)


def test_duckdb_has_the_buckets_of_the_definition() -> None:
    sql = ApproxQuantile.keyed[Dialect.DUCKDB].replace("{x}", "(x)")
    with duckdb.connect() as con:
        con.execute("CREATE TABLE given AS SELECT unnest(?::BIGINT[]) AS x", [EDGES])
        found = con.execute(f"SELECT x, {sql} FROM given ORDER BY x").fetchall()
    assert found == [(value, bucket(value)) for value in EDGES]


def test_a_bucket_is_off_by_at_most_a_128th_and_keeps_the_order() -> None:
    assert all(abs(bucket(value) - value) * 128 <= abs(value) for value in EDGES)
    assert [bucket(value) for value in EDGES] == sorted(bucket(value) for value in EDGES)


@pytest.mark.parametrize(
    ("measure", "kind", "reason"),
    [
        (ApproxQuantile("x"), "DOUBLE", "ApproxQuantile of DOUBLE"),
        (ApproxQuantile("x"), "STRING", "ApproxQuantile of STRING"),
        (ApproxQuantile("x", q=1.5), "BIGINT", "the quantile 1.5"),
    ],
)
def test_what_has_no_quantile_is_refused(measure: ApproxQuantile, kind: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        measure.state("x", kind)
    assert refused.value.reason == reason and refused.value.hint
