"""Tables are read whole, whatever is asked of which column."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.storage import duckdb_reader, tables

TABLE = "batch.things"
AT = datetime(2026, 1, 5, 9, 0, 0, 999, tzinfo=UTC)  # microseconds, which Delta's statistics lack


def without_status(line: str) -> str:
    """An action of the log; a file's statistics leave out `status`, as Spark leaves out what it was not told."""
    action = json.loads(line)
    if "add" in action:
        stats = json.loads(action["add"]["stats"])
        for of in ("minValues", "maxValues", "nullCount"):
            stats[of].pop("status", None)
        action["add"]["stats"] = json.dumps(stats)
    return json.dumps(action) + "\n"


@pytest.fixture
def things(platform_home: Path) -> str:
    """Two files of a table; `status` has no statistics, and the day that parts them may be null."""
    rows = pa.table(
        {
            "key": ["a", "b", "c"],
            "happened_at": pa.array([AT] * 3, pa.timestamp("us", "UTC")),
            "status": ["done", "done", None],
            "day": ["mon", None, "mon"],
        }
    )
    for few in (rows.slice(0, 2), rows.slice(2)):
        write_deltalake(tables.path(TABLE), few, mode="append", partition_by=["day"])
    for log in Path(tables.path(TABLE)).glob("_delta_log/*.json"):
        log.write_text("".join(map(without_status, log.read_text("utf-8").splitlines(keepends=True))))
    return TABLE


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("status = 'done'", "ab"),
        ("status <> 'open'", "ab"),
        ("status IS NULL", "c"),
        ("key >= 'b'", "bc"),
        ("key = 'd'", ""),
        ("day = 'mon'", "ac"),
        ("day IS NULL", "b"),
        ("happened_at = TIMESTAMPTZ '2026-01-05 09:00:00.000999Z'", "abc"),
        ("happened_at > TIMESTAMPTZ '2026-01-05 09:00:00.000999Z'", ""),
    ],
)
def test_a_filter_finds_what_is_there_with_and_without_statistics(things: str, where: str, keys: str) -> None:
    with duckdb_reader.connect({"things": things}) as con:
        found = con.execute(f"SELECT string_agg(key, '' ORDER BY key) FROM things WHERE {where}").fetchone()
        assert found == (keys or None,)


def test_a_file_that_cannot_hold_what_is_asked_is_not_read(things: str) -> None:
    fragments = duckdb_reader.dataset(things).get_fragments(filter=pa.compute.field("key") == "c")
    assert len(list(fragments)) == 1
