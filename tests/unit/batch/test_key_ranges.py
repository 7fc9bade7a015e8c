"""Ranges of keys are disjoint and cover all keys, whatever the samples say."""

from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.batch.key_ranges import KeyedFile, KeyRange, apart, divided, order, packed_keys, unpacked_keys

COLUMNS = ("day", "store")
days = st.none() | st.dates(date(2026, 1, 1), date(2026, 1, 9))
stores = st.none() | st.text("ab\x00é", max_size=3)
keys = st.lists(st.tuples(days, stores), min_size=1, max_size=40)
SCHEMA = pa.schema([("day", pa.date32()), ("store", pa.string())])


def rows(of: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([[key[0] for key in of], [key[1] for key in of]], schema=SCHEMA)


def within(one: KeyRange, table: pa.Table) -> list[tuple[Any, ...]]:
    found = ds.dataset(table).to_table(filter=one.expression())
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@given(of=keys, sample=keys, most=st.integers(1, 20))
def test_each_key_is_in_one_range(of: list[tuple[Any, ...]], sample: list[tuple[Any, ...]], most: int) -> None:
    ranges = divided(COLUMNS, KeyRange(COLUMNS), [(key, 1.0) for key in sample], most)
    found = [key for one in ranges for key in within(one, rows(of))]
    assert sorted(found, key=order) == sorted(of, key=order)


@given(of=keys, most=st.integers(2, 20))
def test_ranges_are_about_equal_where_no_key_repeats(of: list[tuple[Any, ...]], most: int) -> None:
    distinct = list(dict.fromkeys(of))
    ranges = divided(COLUMNS, KeyRange(COLUMNS), [(key, 1.0) for key in distinct], most)
    assert max(len(within(one, rows(distinct))) for one in ranges) <= most + 1


def test_a_key_with_many_rows_leaves_the_others_together() -> None:
    """A file of a million rows whose bounds alone are known, and news of ten of its keys."""
    built = [((bound,), 500_000.0) for bound in (date(2026, 1, 1), date(2026, 1, 20))]
    new = [((date(2026, 1, day),), 10_000.0) for day in range(6, 16)]
    ranges = divided(COLUMNS[:1], KeyRange(COLUMNS[:1]), [*built, *new], 100_000)
    assert [one.low and one.low[0].day for one in ranges] == [None, 6, 11, 20]


@given(bounds=st.lists(st.tuples(days, days), max_size=12), of=keys)
def test_groups_of_files_share_no_first_key(bounds: list[tuple[Any, Any]], of: list[tuple[Any, ...]]) -> None:
    ordered = [sorted(pair, key=lambda day: order((day,))) for pair in bounds]
    files = [KeyedFile(str(number), 1, *pair) for number, pair in enumerate(ordered)]
    groups = list(apart(COLUMNS, files))
    assert sorted(file.address for _, group in groups for file in group) == sorted(file.address for file in files)
    found = [key for one, _ in groups for key in within(one, rows(of))]
    assert sorted(found, key=order) == sorted(of, key=order)
    for one, group in groups:
        for file in group:
            bounds_of = [(bound, None) for bound in (file.least, file.greatest) if bound is not None]
            assert len(within(one, rows(bounds_of))) == len(bounds_of), "a file lies in the range of its group"


def test_keys_travel_with_their_types() -> None:
    of = [(None, "a"), (date(2026, 1, 2), None)]
    assert unpacked_keys(packed_keys(rows(of))) == of


@pytest.mark.parametrize(("days_of", "expected"), [([date(2026, 1, 3)], True), ([date(2026, 1, 9)], False)])
def test_days_are_a_set_and_not_a_hull(days_of: list[date], expected: bool) -> None:
    file = KeyedFile("a", 1, days=(date(2026, 1, 2), date(2026, 1, 4)))
    assert file.has_any_of([*days_of, date(2025, 12, 1), date(2026, 2, 1)]) is expected
