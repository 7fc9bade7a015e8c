"""Rows of speed.partials on their way to files: a file for a kind with many rows, one for the others together."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from spark_jobs.speed import kind_files
from spark_jobs.speed.kind_files import KindFiles
from spark_jobs.storage.data_files import Written

INTO = 1_800_000_000
MANY = {"rides_v1": 5, "users_v1": 7}
FEW = {"orders_v1": 4, "trades_v1": 1}


def rows(kind: str, count: int) -> pa.Table:
    keys = [(3 * n) % count for n in range(count)]
    return pa.table({"view": [kind] * count, "lsn": range(count), kind: [{"key": key} for key in keys]})


def written(root: Path) -> list[Written]:
    files = KindFiles(root.as_uri(), INTO, few=5)
    for kind, count in (MANY | FEW).items():
        for one in (rows(kind, count)[:2], rows(kind, count)[2:]):
            files.add(kind, one)
    return files.written()


def schema(file: Written) -> list[str]:
    return pq.ParquetFile(file.address.removeprefix("file://")).schema_arrow.names


def test_a_kind_with_many_rows_has_a_file_in_the_order_of_its_key(tmp_path: Path) -> None:
    own = [file for file in written(tmp_path) if file.value == str(INTO)]
    assert [schema(file) for file in own] == [["view", "lsn", kind] for kind in sorted(MANY)]
    for file, kind in zip(own, sorted(MANY), strict=True):
        keys = pq.read_table(file.address.removeprefix("file://"))[kind].to_pylist()
        assert keys == [{"key": key} for key in range(MANY[kind])]


def test_kinds_with_few_rows_share_a_file_of_the_commit_with_their_columns_alone(tmp_path: Path) -> None:
    (shared,) = [file for file in written(tmp_path) if file.value == str(kind_files.OPEN)]
    assert schema(shared) == ["view", "lsn", *FEW]


def test_every_row_is_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = counted([row for kind, count in (MANY | FEW).items() for row in rows(kind, count).to_pylist()])
    assert stored(written(tmp_path)) == expected
    monkeypatch.setattr(kind_files, "HELD", 1)
    assert stored(in_pieces := written(tmp_path)) == expected
    assert len(in_pieces) == 7, "each piece, but an empty one, was more than may be held"


def stored(files: list[Written]) -> Counter[str]:
    paths = [file.address.removeprefix("file://") for file in files]
    every = [field for path in paths for field in pq.read_schema(path)]
    whole = pa.unify_schemas([pa.schema([field]) for field in every])
    return counted(ds.dataset(paths, schema=whole).to_table().to_pylist())


def counted(all_rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr({name: value for name, value in row.items() if value is not None}) for row in all_rows)
