"""A build of a sequence leaves files whose keys nothing touches; its tables are those of a build from all rows."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.batch import build_units, merge
from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.batch.derive import Staged
from spark_jobs.batch.merge import Done
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.registry.views import project_views
from spark_jobs.storage import batch_tables, duckdb_reader, task_files
from tests.unfenced import freely

START = datetime(2026, 3, 1, tzinfo=UTC)


def view() -> SequenceView:
    chosen = project_views()["order_state"]
    assert isinstance(chosen, SequenceView)
    return chosen


def row(order: str, day: int, action: str = "placed") -> dict[str, Any]:
    """A row of an order; every one that is placed stays open for ever, a command without its order ends at once."""
    kind = "fact" if action == "placed" else "command"
    ts = since_epoch(START + timedelta(days=day))
    return {"lsn": 1, "key": order, "ts": ts, "kind": kind, "tie": f"{day:03d}", "action": action}


def built(
    mode: BuildMode, base: Source, rows: list[dict[str, Any]], newest: int, to: Path
) -> tuple[Source, list[Done]]:
    """The version that the rows make, and what became of its units, without Spark between them."""
    chosen, file = view(), str(to / f"{mode.value}{newest}.parquet")
    staged = sorted(rows, key=lambda one: str(one["key"]))
    pq.write_table(pa.Table.from_pylist(staged, pa.schema([("lsn", pa.int64()), *chosen.partial_schema])), file)
    at = START + timedelta(days=newest)
    task = BuildTask(chosen, "some", mode, cut=1, cut_at=at, base=base)
    sample = [((one["key"],), 1.0) for one in staged]
    last = {one["kind"]: one["ts"] for one in sorted(rows, key=lambda one: int(one["ts"]))}
    plan = build_units.planned(task, Staged([file], sample=sample, newest=last))
    share, done = merge._merging(plan.units, [[*range(len(plan.units))]]), [Done() for _ in plan.units]
    report = pa.Table.from_batches(share([pa.RecordBatch.from_pydict({"id": [0]})]))
    for number, unit in enumerate(done):
        own = report.filter(pa.compute.equal(report["unit"], number))
        unit.files = {name: [file for _, file in of] for name, of in task_files.files(own).items()}
        unit.is_untouched = merge.UNTOUCHED in own["rows"].to_pylist()
    return build_units.new_versions(plan, done, freely).source, done


def stored(source: Source) -> list[list[dict[str, Any]]]:
    tables = (duckdb_reader.dataset(one).to_table().to_pylist() for one in source.tables(view()))
    return [sorted(rows, key=repr) for rows in tables]


def test_files_without_a_new_key_stay_and_the_tables_are_those_of_all_rows(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_units, "ROWS_AT_ONCE", 10)
    for table, schema in merge.columns(view()).items():
        batch_tables.create(table, schema)
    # Orders of forty days, and two commands without an order, of which the later horizon passes by one.
    old = [row(f"{day:03d}", day) for day in range(40)] + [row("015b", 33, "change"), row("035b", 39, "change")]
    new = [row("040", 41), row("041", 42), row("002", 42, "change")]
    base, first = built(BuildMode.FULL, UNBUILT, old, 39, platform_home)
    assert len(first) > 3
    made, done = built(BuildMode.RESOLVE, base, new, 42, platform_home)
    kept, stay = stored(made), [unit.is_untouched for unit in done]
    assert any(stay) and not all(stay)
    whole, _ = built(BuildMode.FULL, UNBUILT, [*old, *new], 42, platform_home)
    assert made.horizon == whole.horizon
    assert kept == stored(whole)
