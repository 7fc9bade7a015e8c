"""The log of a table forgets the bounds of files that are gone; every version stays what it was."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.storage import delta_log

VERSIONS = 4


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A version per number, with a checkpoint on the way."""
    at = str(tmp_path / "numbers")
    for version in range(VERSIONS):
        write_deltalake(at, pa.table({"number": [1000 + version]}), mode="overwrite")
        if version == 2:
            DeltaTable(at).create_checkpoint()
    return at


def told(root: str) -> set[int]:
    """The numbers that its log tells."""
    from pyarrow import parquet

    files = [path for path in Path(root, "_delta_log").iterdir() if path.suffix in (".json", ".parquet")]
    texts = [p.read_text() if p.suffix == ".json" else str(parquet.read_table(p).to_pylist()) for p in files]
    return {1000 + version for version in range(VERSIONS) if any(str(1000 + version) in text for text in texts)}


def test_bounds_of_files_that_nobody_needs_are_forgotten(root: str) -> None:
    assert told(root) == {1000, 1001, 1002, 1003}
    delta_log.forget_bounds(root, [1])
    assert told(root) == {1001, 1003}
    numbers = [
        DeltaTable(root, version=version).to_pyarrow_table()["number"].to_pylist() for version in range(VERSIONS)
    ]
    assert numbers == [[1000], [1001], [1002], [1003]]
    delta_log.forget_bounds(root, [1])
    assert told(root) == {1001, 1003}


def test_of_a_table_that_nobody_reads_as_it_was_the_newest_version_stays(root: str) -> None:
    delta_log.forget_versions(root)
    assert told(root) == {1003}
    assert DeltaTable(root).to_pyarrow_table()["number"].to_pylist() == [1003]
    write_deltalake(root, pa.table({"number": [1]}), mode="append")
    assert sorted(DeltaTable(root).to_pyarrow_table()["number"].to_pylist()) == [1, 1003]
