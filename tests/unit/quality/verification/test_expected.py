"""What the oracle reads: the records of the log."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.quality.verification.expected import write_records
from spark_jobs.settings import settings

RECORDS, MEGABYTE = 200, 10**6


def test_long_records_are_written_with_less_memory_than_they_have_bytes(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are fewer than a group of rows that DuckDB would keep until it is full."""
    monkeypatch.setenv("TIDEMARK_CHECK_MEMORY_MB", "100")
    settings.cache_clear()
    landed, written = platform_home / "landed.parquet", platform_home / "written.parquet"
    schema = pa.schema([*row_types.RECORD, ("kind", pa.string())])
    with pq.ParquetWriter(landed, schema) as writer:
        for offset in range(RECORDS):
            row = {"lsn": 1, "topic": "order_placed", "partition": 0, "offset": offset, "kind": row_types.RECORD_ROW}
            writer.write_table(pa.Table.from_pylist([row | {"value": b"a" * MEGABYTE}], schema))
    write_records(ds.dataset(landed), 1, written)
    assert pq.read_metadata(written).num_rows == RECORDS
