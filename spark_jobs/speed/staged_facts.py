"""Decoded facts between the two halves of a pass: Arrow files beside speed.partials that no version names.

facts of a chunk -> StagedFactsWriter -> a file per task -> ids of all, for the verdict on duplicates -> portions
of facts, for the views. Deleted once the pass is committed; what a crash leaves goes at the next start.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

import pyarrow as pa
from pyarrow.fs import FileSystem

from spark_jobs.speed.pass_rows import IDS, ids_of
from spark_jobs.storage import tables
from spark_jobs.storage.data_files import Written

FOLDER = "_pass"
PORTION = 256 << 20
"""Bytes of facts that a task computes views over at a time, about."""


def root() -> str:
    """Where the files are."""
    return f"{tables.path(tables.SPEED_PARTIALS)}/{FOLDER}"


class StagedFactsWriter:
    """One task's file, made at the first facts: one Arrow stream after the other, each of one event type."""

    def __init__(self, root: str) -> None:
        self._fs, self._base = FileSystem.from_uri(root)
        self._root, self._path = root, f"{uuid.uuid4()}.arrows"
        self._file: pa.NativeFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, facts: Mapping[str, pa.Table]) -> None:
        """Append the facts of a chunk of records, by event type."""
        for rows in facts.values():
            if not rows.num_rows:
                continue
            if self._file is None:
                self._fs.create_dir(self._base, recursive=True)
                self._file = self._fs.open_output_stream(f"{self._base}/{self._path}")
            with pa.ipc.new_stream(self._file, rows.schema) as stream:
                stream.write_table(rows)

    def written(self) -> list[Written]:
        """Close the file; empty where there were no facts."""
        if self._file is None:
            return []
        size = self._file.tell()
        self._file.close()
        return [Written(self._root, self._path, size, stats="")]


def ids(files: Iterable[Written]) -> pa.Table:
    """Identity, event type and coordinates of all facts (columns of IDS)."""
    all_ids = [ids_of({_type(rows): rows}) for file in files for rows in _streams(file.address)]
    return pa.concat_tables([IDS.empty_table(), *all_ids])


def portions(address: str) -> Iterator[dict[str, pa.Table]]:
    """The facts of a file by event type, about PORTION bytes at a time."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    size = 0
    for rows in _streams(address):
        parts[_type(rows)].append(rows)
        size += rows.nbytes
        if size > PORTION:
            yield _joined(parts)
            parts, size = defaultdict(list), 0
    if parts:
        yield _joined(parts)


def _type(rows: pa.Table) -> str:
    """The event type of a stream, which is never empty."""
    return str(rows["event_type"][0])


def _joined(parts: Mapping[str, list[pa.Table]]) -> dict[str, pa.Table]:
    return {event_type: pa.concat_tables(tables_of_type) for event_type, tables_of_type in parts.items()}


def _streams(address: str) -> Iterator[pa.Table]:
    fs, path = FileSystem.from_uri(address)
    with fs.open_input_file(path) as file:
        size = file.size()
        while file.tell() < size:
            with pa.ipc.open_stream(file) as stream:
                yield stream.read_all()


def clear() -> None:
    """Delete what a process that died left behind."""
    fs, base = FileSystem.from_uri(root())
    fs.delete_dir_contents(base, missing_dir_ok=True)
