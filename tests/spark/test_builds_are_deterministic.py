"""I8: what a build makes does not depend on files, on tasks, on where keys are divided, or on which runs make it."""

import random
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.batch import build_units, derive, merge
from spark_jobs.batch.build_tasks import BuildMode
from spark_jobs.settings import settings
from spark_jobs.storage import tables, task_files
from tests.spark.days import DAY1, DAY2, order, page
from tests.spark.lake import Lake

pytestmark = pytest.mark.spark

DAY0 = "2026-01-02"
VIEWS = ("orders_by_day", "orders_by_colour", "sessions", "bus_latest", "top_sellers", "order_state", "event_rates",
         "orders_last_8_minutes", "average_price_sliding")  # fmt: skip


@pytest.fixture
def built(lake: Lake) -> Lake:
    """A full build over two days, with views of each way to build."""
    lake.use(*VIEWS)
    for first in (0, 20, 40):
        many = [order(first + n, (DAY1, DAY2)[n % 2], n % 24, user_id=n % 5 + 1, store_id=n % 7) for n in range(20)]
        pages = [page(100 + first + n, DAY1, f"{n % 4:02d}:{n:02d}:{first:02d}", user=n % 6) for n in range(20)]
        lake.land([*many, *pages])
    lake.run("r1", mode="full")
    return lake


def stored(lake: Lake, run_id: str) -> dict[str, list[str]]:
    """Table -> the rows of the run's version, in no order."""
    rows: dict[str, list[str]] = {}
    for view in lake.views:
        for table, version in lake.store.built_sources(run_id)[view.id].tables(view):
            of_version = DeltaTable(tables.path(table), version=version).to_pyarrow_table().to_pylist()
            rows[table] = sorted(map(repr, of_version))
    return rows


def files(lake: Lake, run_id: str) -> int:
    versions = [one for view in lake.views for one in lake.store.built_sources(run_id)[view.id].tables(view)]
    return sum(len(DeltaTable(tables.path(table), version=version).file_uris()) for table, version in versions)


def laid_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts in other files, and in another order."""
    for event_type in ("order_placed", "page_viewed"):
        facts = DeltaTable(path := tables.path(tables.facts(event_type))).to_pyarrow_table()
        order = random.Random(8).sample(range(facts.num_rows), facts.num_rows)
        shuffled = facts.take(order)
        write_deltalake(path, shuffled.slice(0, 7), mode="overwrite")
        for first in range(7, facts.num_rows, 11):
            write_deltalake(path, shuffled.slice(first, 11), mode="append")


def divided_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a few keys, a file for each."""
    monkeypatch.setattr(build_units, "ROWS_AT_ONCE", 3)


def in_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """More cores, and more shares for each."""
    other: dict[str, Any] = {"cores": 7}
    changed = settings().model_copy(update=other)
    for module in (derive, merge):
        monkeypatch.setattr(module, "settings", lambda: changed)
    for module in (task_files, merge):
        monkeypatch.setattr(module, "SHARES_PER_CORE", 9)


@pytest.mark.parametrize("differently", [laid_out_anew, divided_finely, in_many_tasks])
def test_i8_a_build_is_the_same(built: Lake, differently: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    differently(monkeypatch)
    assert built.run("r2", mode="full") is not None
    if differently is divided_finely:
        assert files(built, "r2") > files(built, "r1"), "the keys are divided elsewhere"
    assert stored(built, "r2") == stored(built, "r1")


@pytest.mark.parametrize(("days", "mode"), [((), BuildMode.MERGE), ((DAY1,), BuildMode.BUCKETS)])
def test_i8_a_build_upon_another_is_that_of_all_facts(built: Lake, days: tuple[str, ...], mode: BuildMode) -> None:
    """With late events, repeated ones, and one of a day that nobody had seen."""
    late = [order(60 + n, (DAY1, DAY2)[n % 2], n % 24, user_id=n % 6 + 1, store_id=n % 9) for n in range(20)]
    built.land([*late, order(3, DAY2, 3), order(90, DAY0), page(200, DAY1, "00:07:30", user=1)])
    assert built.run("r2", days=days) is not None
    modes = {view_id: build.mode for view_id, build in built.store.builds("r2").items()}
    bucketed = {view.id for view in built.views if view.bucket}
    assert {modes[view_id] for view_id in bucketed} == {mode}
    assert BuildMode.FULL not in modes.values()
    assert built.run("r3", mode="full") is not None
    assert stored(built, "r3") == stored(built, "r2")
    assert stored(built, "r2") != stored(built, "r1")
