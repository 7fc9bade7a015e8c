"""The first half of a build: each file of facts is read once, for all views that want its facts.

files of facts -> shares, one per task -> portions --the speed layer's pass--> staged files, one per task and view, with
partials or rows in the order of their keys; and what the second half must know to divide the work.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from spark_jobs.batch.decode_job import fact_columns
from spark_jobs.batch.key_ranges import Weighted, packed_keys, unpacked_keys
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import partials
from spark_jobs.engine.aggregates import COORDINATES
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import ROW_GROUP, Written
from spark_jobs.storage.fact_slices import Slice, filtered
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.task_files import PORTION, Batches, Task, Writers

SHARE = 1_000_000
"""Facts of a task, about, where there are many."""
DEEP = "#deep"
"""What the name of a view's deep keys ends with."""
REJECTED = "#rejected"
"""What the name of the facts that a view rejects ends with; their files become part of the table as they are."""
SAMPLE = 64
"""Keys of a view's rows of a portion that the driver is told."""
REPORT = pa.schema([*task_files.REPORT, ("sample", pa.binary()), ("newest", pa.string()), ("seconds", pa.float64())])
"""`name`: the view's id, or the name of its deep keys. newest: row kind -> greatest ts, as JSON."""

Share = list[tuple[str, str]]
"""Event types and addresses of files."""


@dataclass(frozen=True)
class Wanted:
    """Views that want the same facts. horizon: view id -> that of the build before, of a sequence.

    only_keys: view id -> files of the keys whose rows alone are wanted; none: all rows are.
    """

    facts: Slice
    views: tuple[View, ...]
    horizon: Mapping[str, int] = field(default_factory=dict)
    only_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass
class Staged:
    """What is staged of one view: files, a sample of their keys, and what the tasks took (CPU and waiting, seconds)."""

    files: list[str] = field(default_factory=list)
    deep_keys: list[str] = field(default_factory=list)
    rejected: list[Written] = field(default_factory=list)
    sample: list[Weighted] = field(default_factory=list)
    newest: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: "Staged") -> None:
        """Take in what was staged of the same view beside."""
        self.files += other.files
        self.sample += other.sample
        self.seconds += other.seconds
        for kind, ts in other.newest.items():
            self.newest[kind] = max(ts, self.newest.get(kind, ts))


def derive(
    spark: SparkSession, wanted: Sequence[Wanted], side_inputs: Mapping[str, pa.Table], folder: str
) -> dict[str, Staged]:
    """View id -> what is staged of it in `folder`. `side_inputs`: as `partials.compute` has them.

    Raises Spark's error with a ViewFailed's message where a view cannot be computed.
    """
    shares = _shares(wanted)
    staged = defaultdict[str, Staged](Staged)
    if not shares:
        return staged
    report = task_files.run(
        task_files.shares(spark, len(shares)), _deriving(shares, wanted, side_inputs, folder), REPORT
    )
    for row in report.to_pylist():
        file = Written(**row["file"])
        if row["name"].endswith(REJECTED):
            staged[row["name"].removesuffix(REJECTED)].rejected.append(file)
            continue
        if row["sample"] is None:
            staged[row["name"].removesuffix(DEEP)].deep_keys.append(file.address)
            continue
        keys = unpacked_keys(row["sample"])
        sample = [(key, row["rows"] / len(keys)) for key in keys]
        staged[row["name"]].add(
            Staged([file.address], sample=sample, newest=json.loads(row["newest"]), seconds=row["seconds"])
        )
    return staged


def _shares(wanted: Sequence[Wanted]) -> list[Share]:
    """The files that hold wanted facts, in shares of about equal size: at least one for each core."""
    files: dict[tuple[str, str], int] = {}
    for one in wanted:
        for event_type in sorted({name for view in one.views for name in view.row_types}):
            files |= {(event_type, address): rows for address, rows in one.facts.files(event_type).items()}
    most = min(sum(files.values()) / settings().cores, SHARE)
    shares, size = list[Share](), 0
    for file, rows in files.items():
        if not shares or size >= most:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += rows
    return shares


def _deriving(shares: list[Share], wanted: Sequence[Wanted], side_inputs: Mapping[str, pa.Table], folder: str) -> Task:
    schemas = {contract.event_type: _schema(contract, wanted) for contract in project_contracts()}

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        with _Stage(folder) as stage:
            for number in task_files.numbers(batches):
                for facts in _portions(shares[number], schemas, wanted):
                    for one in wanted:
                        _one_pass(stage, one, facts, side_inputs)
            yield from stage.report()

    return run


def _schema(contract: Contract, wanted: Sequence[Wanted]) -> pa.Schema:
    """The columns of facts that a view uses, or that say which facts are wanted; an older file may lack some."""
    views = (view for one in wanted for view in one.views if contract.event_type in view.row_types)
    used = {*COORDINATES, "day"}.union(*(view.used_columns for view in views))
    return pa.schema([column for column in fact_columns(contract) if column.name in used])


def _portions(
    share: Share, schemas: Mapping[str, pa.Schema], wanted: Sequence[Wanted]
) -> Iterator[dict[str, pa.Table]]:
    """The wanted facts of the files by event type, about PORTION at a time."""
    filter_ = reduce(or_, (one.facts.expression() for one in wanted))
    parts, size = defaultdict[str, list[pa.RecordBatch]](list), 0
    for event_type, address in share:
        facts = ds.dataset(address, format="parquet", schema=schemas[event_type])
        for batch in in_portions(facts, PORTION, filter_):
            parts[event_type].append(batch)
            size += batch.num_rows
            if size >= PORTION:
                yield {name: pa.Table.from_batches(of_type) for name, of_type in parts.items()}
                parts.clear()
                size = 0
    if size:
        yield {name: pa.Table.from_batches(of_type) for name, of_type in parts.items()}


def _one_pass(
    stage: "_Stage", wanted: Wanted, facts: Mapping[str, pa.Table], side_inputs: Mapping[str, pa.Table]
) -> None:
    chosen = {name: filtered(rows, wanted.facts) for name, rows in facts.items()}
    con, began = duckdb_reader.of_task(), time.monotonic()
    if not wanted.only_keys:  # what older facts of those keys reject is known
        for view, rows in partials.rejected(con, {**side_inputs, **chosen}, wanted.views):
            stage.reject(view, rows)
    for view, rows in partials.to_build(con, {**side_inputs, **chosen}, wanted.views):
        if keys := wanted.only_keys.get(view.id):
            wanted_keys = pa.concat_tables(ds.dataset(file, format="parquet").to_table() for file in keys)
            rows = rows.filter(pc.is_in(rows["key"], wanted_keys["key"]))
        stage.of_view(view, rows)
        if isinstance(view, SequenceView) and (horizon := wanted.horizon.get(view.id)) is not None:
            deep = rows.filter(pc.less(rows["ts"], horizon)).select(["key"])
            stage.write(view.id + DEEP, deep.group_by("key").aggregate([]))
        stage.seconds[view.id] += time.monotonic() - began
        began = time.monotonic()


class _Stage(Writers):
    """The staged files of one task."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.seconds = defaultdict[str, float](float)
        self._folder, self._samples = folder, defaultdict[str, list[pa.Table]](list)
        self._newest = defaultdict[str, dict[str, int]](dict)

    def write(self, name: str, rows: pa.Table) -> None:
        self.add(name, self._folder, rows, with_statistics=(), row_group=ROW_GROUP)

    def reject(self, view: View, rows: pa.Table) -> None:
        self.add(view.id + REJECTED, tables.path(tables.VIEW_REJECTS), rows, partition=("view", view.id))

    def of_view(self, view: View, rows: pa.Table) -> None:
        """Add rows in the order of their keys."""
        self.write(view.id, rows)
        if rows.num_rows:
            some = pa.array(range(0, rows.num_rows, max(rows.num_rows // SAMPLE, 1)))
            self._samples[view.id].append(rows.select(view.ordered_by).take(some))
        if isinstance(view, SequenceView):
            newest, known = rows.group_by("kind").aggregate([("ts", "max")]), self._newest[view.id]
            for kind, ts in zip(newest["kind"].to_pylist(), newest["ts_max"].to_pylist(), strict=True):
                known[kind] = max(ts, known.get(kind, ts))

    def report(self) -> Iterator[pa.RecordBatch]:
        """The rows of REPORT."""
        rows = []
        for file in self.reported():
            name = file["name"]
            sample = packed_keys(pa.concat_tables(self._samples[name])) if name in self._samples else None
            newest = json.dumps(self._newest[name])
            rows.append({**file, "sample": sample, "newest": newest, "seconds": self.seconds[name]})
        yield from pa.Table.from_pylist(rows, schema=REPORT).to_batches()
