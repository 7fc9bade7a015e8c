"""Which rows of a new version are checked: those of new files, of files with the same keys, and of one other file."""

from itertools import chain
from pathlib import Path

import great_expectations.expectations as gxe
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.quality.expectations import audited, relation, suites
from spark_jobs.quality.expectations.relation import Stored
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables

KEYS = ("key",)
UNIQUE = Suite("batch.some", KEYS, (), KEYS)
ROW_BY_ROW = Suite("batch.some", KEYS, (), ())
WHOLE = Suite("batch.some", KEYS, ())


@pytest.fixture
def base(platform_home: Path) -> int:
    """A version of four files: keys 0 to 9, 10 to 19, 20 to 29, 30 to 39."""
    for first in range(0, 40, 10):
        append(range(first, first + 10))
    return duckdb_reader.version("batch.some")


def append(keys: range) -> None:
    write_deltalake(tables.path("batch.some"), pa.table({"key": pa.array(keys, pa.int64())}), mode="append")


def keys_of(suite: Suite, base: int) -> set[int]:
    version = duckdb_reader.version("batch.some")
    files = audited._changed(suite, KEYS, version, base)
    frames = Stored("batch.some", version, files=files).frames(suite)
    assert frames is not None
    return {key for frame in frames for key in frame["key"]}


def test_of_files_that_stay_one_is_looked_at(base: int) -> None:
    DeltaTable(tables.path("batch.some")).delete("key = 15")
    looked_at = keys_of(UNIQUE, base)
    assert {*range(10, 20)} - {15} < looked_at and len(looked_at) == 9 + 10


def test_files_that_may_have_the_same_keys_are_looked_at_together(base: int) -> None:
    append(range(12, 24, 4))
    assert {*range(10, 30)} <= keys_of(UNIQUE, base), "12 and 20 are there twice"
    alone = keys_of(ROW_BY_ROW, base)
    assert {12, 16, 20} <= alone and len(alone) <= 3 + 10, "no other row matters to a row"


def test_what_only_the_table_can_tell_is_asked_of_all_rows(base: int) -> None:
    append(range(50, 51))
    assert len(keys_of(WHOLE, base)) == 41


def test_where_no_file_is_new_all_are_looked_at(base: int) -> None:
    assert len(keys_of(UNIQUE, base)) == 40


@pytest.mark.parametrize("suite", [UNIQUE, ROW_BY_ROW, WHOLE])
@pytest.mark.parametrize("at_once", [41, 40])
def test_a_small_table_is_looked_at_whole_whatever_its_files(
    base: int, suite: Suite, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that two files have is there twice."""
    monkeypatch.setattr(relation, "AT_ONCE", at_once)
    frames = Stored("batch.some").frames(suite)
    assert frames is not None
    assert [sorted(frame["key"]) for frame in frames] == [[*range(40)]]


def test_a_large_table_is_looked_at_in_parts_that_have_all_rows_of_a_key(
    base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(range(0, 40))
    monkeypatch.setattr(relation, "AT_ONCE", 10)
    frames = Stored("batch.some").frames(UNIQUE)
    assert frames is not None
    parts = [sorted(frame["key"]) for frame in frames]
    assert len(parts) > 1 and sorted(chain(*parts)) == sorted([*range(40), *range(40)])
    assert all(part == sorted(2 * [*set(part)]) for part in parts), "a key is in one part, twice"
    assert [*settings().tmp_dir.iterdir()] == [], "nothing is left of them"
    assert Stored("batch.some").frames(WHOLE) is None, "then Spark looks at it"


def test_a_large_table_whose_rows_are_judged_one_by_one_is_read_once_a_portion_at_a_time(
    base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(range(40, 10_000))
    monkeypatch.setattr(relation, "AT_ONCE", 4096)
    frames = Stored("batch.some").frames(ROW_BY_ROW)
    assert frames is not None
    parts = [[*frame["key"]] for frame in frames]
    assert sorted(chain(*parts)) == [*range(10_000)] and max(map(len, parts)) < 2 * 4096


@pytest.mark.parametrize(
    ("own", "together"),
    [
        (gxe.ExpectColumnValuesToBeBetween(column="key", min_value=0), KEYS),
        (gxe.ExpectColumnValuesToBeBetween(column="key", min_value=0, mostly=0.9), None),
        (gxe.ExpectColumnValuesToBeUnique(column="key"), None),
        (gxe.ExpectColumnMeanToBeBetween(column="key", max_value=1), None),
        (gxe.ExpectTableRowCountToBeBetween(min_value=1), None),
    ],
)
def test_an_expectation_of_ones_own_says_how_much_it_must_see(
    own: gxe.Expectation, together: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "_own_expectations", lambda table: [own])
    assert suites._suite("batch.some", KEYS, [], KEYS).together == together
