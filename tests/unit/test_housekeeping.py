"""Which partitions of the hot tables are worth a compaction."""

import pyarrow as pa

from spark_jobs.speed.housekeeping import MANY_SMALL_FILES, SMALL_FILE, fragmented


def files(*sizes_by_span: tuple[int, int]) -> pa.Table:
    spans, sizes = zip(*sizes_by_span, strict=True)
    return pa.table({"partition.span": spans, "size_bytes": sizes})


def test_only_partitions_with_many_small_files_are_written_again() -> None:
    many = [(3, 100)] * MANY_SMALL_FILES
    few = [(1, 100)] * (MANY_SMALL_FILES - 1)
    large = [(2, SMALL_FILE)] * MANY_SMALL_FILES
    assert fragmented(files(*many, *few, *large), "span") == [3]


def test_a_compacted_partition_is_left_alone() -> None:
    assert fragmented(files((3, SMALL_FILE // 2)), "span") == []
