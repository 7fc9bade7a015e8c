"""The weekly rebuild of a part of the views, from all facts."""

from dataclasses import replace

import pytest

from spark_jobs.batch.plan import Origin, plan_rebuild
from spark_jobs.quality.reconciliation.agreement import UNEXPLAINED, agree
from spark_jobs.storage import duckdb_reader
from tests.spark.days import DAY2, order
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def test_c5_a_rebuild_builds_one_part_of_the_views_from_all_facts_at_the_published_cut(lake: Lake) -> None:
    lake.use("orders_by_day", "word_count")
    lake.land([order(1), event("sentence_posted", 9)])
    lake.run("r1")
    lake.land([order(2), event("sentence_posted", 10)])
    lake.run("r2")
    lake.land([order(3)])
    served = lake.served("orders_by_day"), lake.served("word_count")
    ids = [view.id for view in lake.views]
    rebuilt = list[str]()
    turns: list[tuple[str, Origin]] = [("w1", "facts"), ("w2", "raw")]
    for run_id, origin in turns:
        run = plan_rebuild(lake.store, ids, run_id, 2, origin)
        assert run.cut == 2
        lake.build(run_id)
        old, new = lake.store.current_sources(), lake.store.built_sources(run_id)
        found = [*agree(lake.views, old, new, {}, whole=True)]
        assert [one.differing for one in found] == [0, 0] and all(one.rows for one in found)
        modes = {view_id: build.mode for view_id, build in lake.store.builds(run_id).items()}
        assert sorted(modes.values()) == ["full", "same"]
        rebuilt += [view_id for view_id, mode in modes.items() if mode == "full"]
        lake.store.record_audit(run_id, passed=True)
        assert lake.publish(run_id) is not None
        assert (lake.served("orders_by_day"), lake.served("word_count")) == served
    assert sorted(rebuilt) == ids, "each view has its turn"
    decoded = [(lake.store.run(run_id) or run).summary.get("facts") for run_id in ("w1", "w2")]
    assert decoded == [None, 4], "from raw bytes, all records up to the cut are decoded once more"


def test_c5_a_rebuild_tells_what_daily_builds_have_lost(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1), order(2, DAY2)])
    lake.run("r1")
    lake.lose("batch.orders_by_day", "day = DATE '2026-01-06'")
    source = lake.store.current_sources()["orders_by_day"]
    spoilt = replace(source, batch_version=duckdb_reader.version("batch.orders_by_day"))
    lake.store.finish_publication(lake.store.begin_publication("batch", {"orders_by_day": spoilt}, cut=1).id)
    plan_rebuild(lake.store, ["orders_by_day"], "w1", 4)
    lake.build("w1")
    [found] = agree(lake.views, lake.store.current_sources(), lake.store.built_sources("w1"), {}, whole=True)
    assert found.causes == {UNEXPLAINED: 1}
