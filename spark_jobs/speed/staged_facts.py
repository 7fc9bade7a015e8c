"""Decoded facts between the two halves of a pass: Arrow files beside speed.partials that no version names.

facts of a chunk -> StagedFactsWriter -> two files per task -> ids of all, for the verdict on duplicates -> portions
of facts, for the views. Deleted once the pass is committed; what a crash leaves goes at the next start.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

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


class StagedFactsWriter(AbstractContextManager["StagedFactsWriter"]):
    """One task's files, made at the first rows: the facts, and what the verdict on duplicates needs of them."""

    def __init__(self, root: str) -> None:
        self._facts, self._ids = _Streams(root), _Streams(root)

    def __exit__(self, *_: object) -> None:
        self._facts.close()
        self._ids.close()

    def add(self, facts: Mapping[str, pa.Table]) -> None:
        """Append the facts of a chunk of records, by event type."""
        for rows in facts.values():
            self._facts.add(rows)
        self._ids.add(ids_of(facts))

    def written(self) -> tuple[list[Written], list[Written]]:
        """Close the files, of facts and of ids; empty where there were none."""
        return self._facts.close(), self._ids.close()


class _Streams:
    """One Arrow stream after the other in a file; for facts each of one event type."""

    def __init__(self, root: str) -> None:
        self._fs, self._base = FileSystem.from_uri(root)
        self._root, self._path = root, f"{uuid.uuid4()}.arrows"
        self._file: pa.NativeFile | None = None
        self._size = 0

    def add(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._file is None:
            self._fs.create_dir(self._base, recursive=True)
            self._file = self._fs.open_output_stream(f"{self._base}/{self._path}")
        with pa.ipc.new_stream(self._file, rows.schema) as stream:
            stream.write_table(rows)

    def close(self) -> list[Written]:
        if self._file is None:
            return []
        if not self._file.closed:
            self._size = self._file.tell()
            self._file.close()
        return [Written(self._root, self._path, self._size, stats="")]


def ids(files: Iterable[Written]) -> pa.Table:
    """Identity, event type and coordinates of all facts (columns of IDS), from the files of ids."""
    return pa.concat_tables([IDS.empty_table(), *(rows for file in files for rows in _streams(file.address))])


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
