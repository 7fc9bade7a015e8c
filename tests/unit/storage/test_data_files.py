"""What no version names goes, in time; what one names stays."""

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.storage import data_files, tables
from spark_jobs.storage.data_files import FileWriter
from spark_jobs.storage.vacuum import vacuum
from tests.unfenced import freely

LOG = tables.MASTER_LOG
ROWS = pa.table({"lsn": [1, 2], "day": [7, 7]})


@pytest.fixture
def root(platform_home: Path) -> str:
    """An append-only table of one file."""
    root = tables.path(LOG)
    write_deltalake(root, ROWS, partition_by=["day"], configuration={"delta.appendOnly": "true"})
    return root


def left_behind(root: str, *, hours: float) -> Path:
    """A file that was written, but not committed."""
    with FileWriter(root, ("day", 7)) as writer:
        writer.add(ROWS)
        [written] = writer.written()
    path, then = Path(root) / written.path, time.time() - hours * 3600
    os.utime(path, (then, then))
    return path


def test_a_file_without_a_commit_is_removed_once_it_is_old(root: str) -> None:
    old, young = left_behind(root, hours=48), left_behind(root, hours=1)
    assert vacuum(root, 24) == 1
    assert not old.exists() and young.exists()
    assert DeltaTable(root).to_pyarrow_table().num_rows == 2
    version = DeltaTable(root).version()
    assert vacuum(root, 24) == 0
    assert DeltaTable(root).version() == version, "a vacuum of nothing is no version"


def test_a_table_that_is_not_there_has_nothing_to_remove(platform_home: Path) -> None:
    assert vacuum(tables.path(LOG), 24) == 0


def test_committed_files_are_one_version_with_statistics(root: str) -> None:
    with (
        FileWriter(root, ("day", 8)) as first,
        FileWriter(root, ("day", 8)) as second,
        FileWriter(root, ("day", 8)) as none,
    ):
        first.add(pa.table({"lsn": [4, 3]}))
        first.add(pa.table({"lsn": [9]}))
        second.add(pa.table({"lsn": pa.nulls(1, pa.int64())}))
        written = [*first.written(), *second.written(), *none.written()]
    assert len(written) == 2 and DeltaTable(root).version() == 0
    data_files.commit(root, written, "append", freely)
    table = DeltaTable(root)
    assert table.version() == 1
    added = pa.table(table.get_add_actions(flatten=True)).sort_by("min.lsn").to_pylist()
    assert [(one["min.lsn"], one["max.lsn"], one["null_count.lsn"], one["num_records"]) for one in added] == [
        (1, 2, 0, 2),
        (3, 9, 0, 3),
        (None, None, 1, 1),
    ]
    assert sorted(table.to_pyarrow_table().to_pydict()["day"]) == [7, 7, 8, 8, 8, 8]


def test_an_overwrite_names_the_new_files_alone_and_bounds_of_long_texts_stay_short(platform_home: Path) -> None:
    root = tables.path("batch.words")
    write_deltalake(root, pa.table({"lsn": [1], "word": ["old"]}))
    with FileWriter(root, with_statistics=["lsn", "word"]) as writer:
        writer.add(pa.table({"lsn": [5, 6], "word": ["a" * 300, "w" * 300]}))
        written = writer.written()
    data_files.commit(root, written, "overwrite", freely)
    table = DeltaTable(root)
    assert table.version() == 1 and table.to_pyarrow_table()["lsn"].to_pylist() == [5, 6]
    stats = json.loads(written[0].stats)
    assert stats["minValues"] == {"lsn": 5, "word": "a" * data_files.LONGEST} and stats["maxValues"] == {"lsn": 6}


def test_discarded_files_are_gone(root: str) -> None:
    with FileWriter(root, ("day", 8)) as writer:
        writer.add(ROWS.drop_columns(["day"]))
        written = writer.written()
    data_files.discard(written)
    assert not list((Path(root) / "day=8").iterdir())
