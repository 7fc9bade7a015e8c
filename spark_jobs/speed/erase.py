"""Take out of the hot tables what was erased: the log's bytes, and the partials in which they were counted.

revisions of the action `erase` that readers have a publication past -> the records' rows blanked, file by file -> the
revisions replaced by one entry that tells what was done; the files that had the bytes are deleted.

A process that dies in between is asked again: the revisions go last, and a blanked row stays as it is (I18).
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from spark_jobs.contracts import erasures, revision_rows, row_types
from spark_jobs.contracts.revisions import Action, InForce, Place, Revision, Revisions
from spark_jobs.engine.decode.erased import named
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.speed.log_compaction import row_groups, rows_of
from spark_jobs.speed.partials_table import SPAN
from spark_jobs.storage import data_files, lsn_ranges, tables
from spark_jobs.storage.data_files import ROW_GROUP, Bounds, FileWriter, Written, files_within
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.vacuum import vacuum

log = logging.getLogger("tidemark.speed.erase")

OWN = "__"
"""Begins the kinds of partials that are the platform's own: ids, places, counts, and nothing that was sent."""
DAY = "landed_on"
EVERY = ds.scalar(True)
IS_REVISION = ds.field("kind") == row_types.REVISION_ROW


class Eraser:
    """`turn` is held for each commit, and while files are deleted: a micro-batch must not lose those it writes."""

    def __init__(self, turn: threading.Lock, fence: Fence) -> None:
        self._turn, self._fence = turn, fence

    def erase(self, known: Revisions, upto: int) -> Mapping[Place, Revision]:
        """Erase the records of the erasures in (0, upto]; returns them."""
        erased = {one.place: one for one in known.within(0, upto) if one.action is Action.ERASE}
        if erased:
            self._partials(min(place.lsn for place in erased), upto)
            self._records(InForce(erased))
            self._revisions(erased)
            log.info("erased %d records of the log", len(erased))
        with self._turn:
            for table in (tables.MASTER_LOG, tables.SPEED_PARTIALS):
                vacuum(tables.path(table), hours=0)
        return erased

    def _partials(self, first: int, upto: int) -> None:
        """Without the views' rows of [first, upto], which nobody reads any more."""
        table, root = DeltaTable(tables.path(tables.SPEED_PARTIALS)), tables.path(tables.SPEED_PARTIALS)
        files, schema = files_within(table, {"lsn": [(first, upto)]}), pa.schema(table.schema())
        mine = ~pc.starts_with(ds.field("view"), OWN) & lsn_ranges.within([(first, upto)])
        for path, span in zip(files["path"].to_pylist(), files[f"partition.{SPAN}"].to_pylist(), strict=True):
            rows = ds.dataset(f"{root}/{unquote(path)}", format="parquet")
            if not rows.count_rows(filter=mine):
                continue
            columns = pa.schema([schema.field(name) for name in rows.schema.names])
            with FileWriter(root, (SPAN, span), row_group=ROW_GROUP) as file:
                for batch in in_portions(rows.replace_schema(columns), ROW_GROUP, ~mine):
                    file.add(pa.Table.from_batches([batch]))
                self._swap(tables.SPEED_PARTIALS, path, file.written())

    def _records(self, said: InForce) -> None:
        lsns = lsn_ranges.joined((place.lsn, place.lsn) for place in said.erased)
        record = (row_types.RECORD_ROW, row_types.RECORD_ROW)
        for path, day in _log_files({"lsn": lsns, "kind": [record]}):
            if any(_unblanked(rows, said) for rows in _rows(path)):
                self._again(path, day, (_blanked(rows, said) for rows in _rows(path)))

    def _revisions(self, erased: Mapping[Place, Revision]) -> None:
        """Those about the records hold what was to be read in their place. The erasures go last, file by file."""
        kind = (row_types.REVISION_ROW, row_types.REVISION_ROW)
        said = [(*file, pa.concat_tables(_rows(file[0], IS_REVISION))) for file in _log_files({"kind": [kind]})]
        about = [(path, day, rows, revision_rows.from_rows(rows.to_pylist()).entries) for path, day, rows in said]
        for path, day, rows, entries in sorted(
            about, key=lambda file: any(one.action is Action.ERASE for one in file[3])
        ):
            if gone := [one for one in entries if one.place in erased]:
                told = rows.filter(pa.array([*map(revision_rows.tells_erased, rows.to_pylist())], pa.bool_()))
                left = [revision_rows.rows([one for one in entries if one.place not in erased], day)]
                left += [revision_rows.erased_row(some, day) for some in _by_lsn(gone)]
                new = (some.select(rows.column_names) for some in left)
                self._again(path, day, (*_rows(path, ~IS_REVISION), told, *new))

    def _again(self, path: str, day: date, rows: Iterable[pa.Table]) -> None:
        """The file of the log, with other rows."""
        with FileWriter(tables.path(tables.MASTER_LOG), (DAY, day)) as file:
            for some in row_groups(rows):
                file.add(some)
            self._swap(tables.MASTER_LOG, path, file.written())

    def _swap(self, table: str, path: str, files: list[Written]) -> None:
        with self._turn:
            data_files.swap(DeltaTable(tables.path(table)), [path], files, self._fence.committing, is_new=False)


def _log_files(bounds: Bounds) -> list[tuple[str, date]]:
    """Paths of the log's files, and their day."""
    files = files_within(DeltaTable(tables.path(tables.MASTER_LOG)), bounds)
    return [*zip(files["path"].to_pylist(), files[f"partition.{DAY}"].to_pylist(), strict=True)]


def _rows(path: str, wanted: ds.Expression = EVERY) -> Iterator[pa.Table]:
    return rows_of(tables.path(tables.MASTER_LOG), [path], wanted)


def _unblanked(rows: pa.Table, said: InForce) -> list[int]:
    """The numbers of the records to be blanked that are not."""
    done = {*erasures.is_blanked(rows)}
    return [number for number in named(rows, said) if number not in done]


def _blanked(rows: pa.Table, said: InForce) -> pa.Table:
    """The rows in their order, those that are erased without their content."""
    if not (numbers := _unblanked(rows, said)):
        return rows
    lsns = [said.erased[place].lsn for place in places_of(rows.take(pa.array(numbers)))]
    left = np.setdiff1d(np.arange(rows.num_rows), numbers)
    order = pa.array(np.argsort(np.concatenate([left, numbers])))
    return pa.concat_tables([rows.take(pa.array(left)), erasures.blanked(rows.take(pa.array(numbers)), lsns)]).take(
        order
    )


def _by_lsn(said: Iterable[Revision]) -> list[list[Revision]]:
    """The erasures among them, by the lsn at which they were said."""
    of = defaultdict[int, list[Revision]](list)
    for one in said:
        if one.action is Action.ERASE:
            of[one.lsn].append(one)
    return [*of.values()]
