"""A5: what views reject is recorded by each build, for the facts that it has read; without Spark."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.batch import derive, rejected
from spark_jobs.batch.derive import Staged, Wanted
from spark_jobs.quality.reconciliation.agreement import UNEXPLAINED, agree
from spark_jobs.storage import tables
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.fact_slices import Slice
from tests.dear_orders import BY_DAY, DEAR, FIELDS, views
from tests.local_platform import START, Platform, event
from tests.unfenced import freely


@pytest.fixture
def platform(platform_home: Path) -> Platform:
    """Two micro-batches, each with a dear order; facts up to the second."""
    made = Platform([])
    made.views = views()
    made.land([event("order_placed"), event("order_placed", **DEAR)])
    made.land([event("order_placed", **DEAR), event("order_placed")])
    made.build()
    shutil.rmtree(tables.path(tables.VIEW_REJECTS))
    rejected.create()
    return made


def record(wanted: Wanted, folder: Path) -> None:
    """What the tasks of a build write, and the driver makes a version of."""
    shares = derive._shares([wanted])
    run = derive._deriving(shares, [wanted], {}, str(folder))
    rows = pa.Table.from_batches(run([pa.record_batch({"id": range(len(shares))})]), derive.REPORT).to_pylist()
    staged: dict[str, Staged] = {}
    for row in (row for row in rows if row["name"].endswith(derive.REJECTED)):
        view = row["name"].removesuffix(derive.REJECTED)
        staged.setdefault(view, Staged()).rejected.append(Written(**row["file"]))
    rejected.record([wanted], staged, freely)


def recorded() -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for view in FIELDS:
        rows = rejected.of_view(view, 0, 2).select(["lsn", "offset", "field"]).to_pylist()
        found[view] = sorted(tuple(row.values()) for row in rows)
    return found


def test_a5_a_build_records_what_its_facts_give_and_leaves_the_rest(platform: Platform, tmp_path: Path) -> None:
    every = tuple(platform.views)
    record(Wanted(Slice(1), every), tmp_path)
    assert recorded() == {view: [(1, 1, field)] for view, field in FIELDS.items()}
    record(Wanted(Slice(2, above=1), every), tmp_path)
    both = {view: [(1, 1, field), (2, 2, field)] for view, field in FIELDS.items()}
    assert recorded() == both, "new facts beside those of before"
    for again in (Slice(2, above=1), Slice(2, 2, (START.date().isoformat(),)), Slice(2)):
        record(Wanted(again, every), tmp_path)
        assert recorded() == both, "a repetition changes nothing"
    record(Wanted(Slice(2, 2, ("2020-01-01",)), every), tmp_path)
    assert recorded() == both, "another day's facts are not touched"


def test_a5_a_reject_of_one_layer_alone_is_unexplained(platform: Platform, tmp_path: Path) -> None:
    sources = platform.build()
    assert not any(one.differing for one in agree(platform.views, {}, sources, {}))
    shutil.rmtree(tables.path(tables.VIEW_REJECTS))
    found = {one.view: one for one in agree(platform.views, {}, sources, {})}
    assert {view: one.causes for view, one in found.items()} == {view: {UNEXPLAINED: 2} for view in FIELDS}
    said = "rejected: lsn=1, topic=order_placed, partition=0, offset=1: only in speed (event_type order_placed, field"
    assert found[BY_DAY].unexplained[0].startswith(said)
