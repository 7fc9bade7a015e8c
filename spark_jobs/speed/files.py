"""Data files of a hot table: written where the rows are made, part of the table only by a later commit.

rows -> FileWriter -> a Parquet file that no version names -> Written -> commit -> a version. A file that is never
committed is not seen by any reader.
"""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction
from pyarrow.fs import FileSystem

FIELDS = [("root", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("stats", pa.string())]
WRITTEN = pa.struct([*FIELDS, ("partition", pa.string()), ("value", pa.string())])

WITH_STATISTICS = ("lsn", "kind", "view")
"""What readers of the hot tables look for."""


@dataclass(frozen=True)
class Written:
    """A data file. `path` is relative to `root`, the table's; `stats` is Delta's JSON; `partition` = `value` there."""

    root: str
    path: str
    size: int
    stats: str
    partition: str
    value: str

    def as_dict(self) -> dict[str, Any]:
        """A value of the type WRITTEN."""
        return asdict(self)


class FileWriter:
    """One file of one partition of a table, made at the first rows. `root`: where the table is."""

    def __init__(self, root: str, partition: str, value: object) -> None:
        self._fs, self._base = FileSystem.from_uri(root)
        self._root, self._partition, self._value = root, partition, str(value)
        self._path = f"{partition}={value}/part-{uuid.uuid4()}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._bounds = _Bounds()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, rows: pa.Table) -> None:
        """Append rows, all of one schema, which may have the partition's column."""
        if not rows.num_rows:
            return
        rows = rows.drop_columns([self._partition]) if self._partition in rows.column_names else rows
        at = f"{self._base}/{self._path}"
        if self._writer is None:
            self._fs.create_dir(at.rpartition("/")[0], recursive=True)
            self._writer = pq.ParquetWriter(at, rows.schema, filesystem=self._fs)
        self._writer.write_table(rows)
        self._bounds.add(rows)

    def written(self) -> list[Written]:
        """Close the file; empty where there were no rows."""
        if self._writer is None:
            return []
        self._writer.close()
        size = self._fs.get_file_info(f"{self._base}/{self._path}").size
        return [Written(self._root, self._path, size, self._bounds.stats(), self._partition, self._value)]


class _Bounds:
    """Number of rows, and the least and greatest values of the columns WITH_STATISTICS."""

    def __init__(self) -> None:
        self._rows = 0
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}
        self._nulls: dict[str, int] = {}

    def add(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        for name in WITH_STATISTICS:
            if name not in rows.column_names:
                continue
            found = pc.min_max(rows[name]).as_py()
            self._nulls[name] = self._nulls.get(name, 0) + rows[name].null_count
            if found["min"] is not None:
                self._least[name] = min(found["min"], self._least.get(name, found["min"]))
                self._greatest[name] = max(found["max"], self._greatest.get(name, found["max"]))

    def stats(self) -> str:
        return json.dumps(
            {
                "numRecords": self._rows,
                "minValues": self._least,
                "maxValues": self._greatest,
                "nullCount": self._nulls,
            }
        )


def commit(root: str, files: Iterable[Written], about: Mapping[str, str]) -> None:
    """Make the files part of the table at `root`, in one version. `about` goes into the commit's metadata."""
    table = DeltaTable(root)
    now = int(time.time() * 1000)
    added = [AddAction(f.path, f.size, {f.partition: f.value}, now, True, f.stats) for f in files]
    table.create_write_transaction(
        added,
        "append",
        table.schema(),
        table.metadata().partition_columns,
        commit_properties=CommitProperties(custom_metadata=dict(about)),
    )


def discard(files: Iterable[Written]) -> None:
    """Delete files that are not to be committed."""
    for one in files:
        fs, base = FileSystem.from_uri(one.root)
        fs.delete_file(f"{base}/{one.path}")
