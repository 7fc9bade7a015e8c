"""Files are read a portion at a time: the rows are those of a scan, the memory is that of a portion."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from spark_jobs.storage.file_portions import in_portions

GROUP, GROUPS = 10_000, 40


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ds.Dataset:
    """Two files, each of forty row groups of ten thousand rows; one lacks a column."""
    folder: Path = tmp_path_factory.mktemp("files")
    lsns = np.arange(2 * GROUP * GROUPS)
    rows = pa.table({"lsn": lsns, "value": [f"value {lsn} of many" for lsn in lsns.tolist()]})
    half = GROUP * GROUPS
    pq.write_table(rows.slice(0, half), folder / "a.parquet", row_group_size=GROUP)
    pq.write_table(rows.slice(half).select(["lsn"]), folder / "b.parquet", row_group_size=GROUP)
    return ds.dataset(folder, rows.schema, format="parquet")


@pytest.mark.parametrize("rows", [1_000, GROUP, 25_000, 10**9])
@pytest.mark.parametrize(
    "where", [None, ds.field("lsn") > 395_000, ds.field("value").is_null(), ds.field("lsn") < 0], ids=str
)
def test_the_rows_are_those_of_a_scan(source: ds.Dataset, rows: int, where: ds.Expression | None) -> None:
    found = [*in_portions(source, rows, where, ["value", "lsn"])]
    expected = source.to_table(["value", "lsn"], filter=where).sort_by("lsn")
    assert pa.Table.from_batches(found, expected.schema).sort_by("lsn").equals(expected)
    assert max((batch.num_rows for batch in found), default=0) <= rows


def test_a_reader_who_takes_long_has_a_portion_in_memory_and_not_the_file(source: ds.Dataset) -> None:
    before, most = pa.total_allocated_bytes(), 0
    whole = source.to_table().nbytes
    for _ in in_portions(source, GROUP):
        time.sleep(0.02)  # for whoever reads ahead
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < whole / 10
