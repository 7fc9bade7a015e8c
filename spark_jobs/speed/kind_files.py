"""Files of speed.partials with the columns of their rows alone.

rows by their kind (a view's column, or a kind of control row) -> a file per kind, in the order of its key -> Written.
Where a kind has few rows they stay with others' in a file of the commit, as a file costs each of its readers.
"""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.speed.partials_table import OPEN, SPAN
from spark_jobs.storage.data_files import ROW_GROUP, FileWriter, Written

HELD = 128 * 2**20
"""Bytes of rows in memory; beyond them the kind with most becomes a file."""
FEW = 5_000
"""Rows in a file of their own cost less to write than beside other kinds' columns, from about here."""


class KindFiles:
    """Rows on their way to the files of the span or period that began at `into`.

    root: where the table is, as a worker is told; few: so many rows of a kind get a file of their own.
    """

    def __init__(self, root: str, into: int, few: int = 0) -> None:
        self._root, self._into, self._few, self._files = root, into, few, list[Written]()
        self._rows: dict[str, list[pa.Table]] = defaultdict(list)
        self._bytes: dict[str, int] = defaultdict(int)

    def add(self, kind: str, rows: pa.Table) -> None:
        """Take rows of one kind: the columns view, lsn and its own."""
        self._rows[kind].append(rows)
        self._bytes[kind] += rows.nbytes
        while sum(self._bytes.values()) > HELD:
            self._write(max(self._bytes, key=lambda kind: self._bytes[kind]))

    def written(self) -> list[Written]:
        """The files, closed; what has few rows is in one of them, which is OPEN as those of small micro-batches are."""
        few = {kind: rows for kind, rows in self._rows.items() if sum(map(len, rows)) < self._few}
        for kind in sorted(self._rows.keys() - few.keys()):
            self._write(kind)
        together = [rows for kind in sorted(few) for rows in few[kind]]
        if together:
            with self._file(OPEN) as file:
                file.add(pa.concat_tables(together, promote_options="default"))
                self._files += file.written()
        return self._files

    def _write(self, kind: str) -> None:
        rows = pa.concat_tables(self._rows.pop(kind))
        del self._bytes[kind]
        if kind in rows.column_names:
            rows = rows.take(pc.sort_indices(rows[kind].combine_chunks().field(0)))
        with self._file(self._into) as file:
            file.add(rows)
            self._files += file.written()

    def _file(self, span: int) -> FileWriter:
        return FileWriter(self._root, (SPAN, span), row_group=ROW_GROUP)
