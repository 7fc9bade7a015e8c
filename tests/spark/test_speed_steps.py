"""The speed layer's steps over real tables: both ways agree, crashes heal, duplicates count once (I1, I4, I10)."""

import datetime as dt
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine import partials
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.publication.names import ensure_named
from spark_jobs.registry.views import project_views
from spark_jobs.speed import catch_up, land, partials_table
from spark_jobs.speed.distributed import take
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.partials_step import process
from spark_jobs.storage import tables
from spark_jobs.storage.coverage import covered
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests import micro_batches
from tests.spark.lake import event

NOW = dt.datetime.now(dt.UTC)
FENCE = Fence(1)
ORDERS = [event("order_placed", n, store_id=n % 3 + 1, colour=("red", "blue")[n % 2]) for n in range(40)]
PAGES = [event("page_viewed", 100 + n, user_id=n % 4 + 1) for n in range(20)]


@pytest.fixture
def hot_tables(spark, lake):
    """Empty hot tables with the columns of a few views of each kind."""
    names = ("orders_by_colour", "orders_by_hour", "bus_latest", "sessions", "late_and_rejected")
    views = [view for view in project_views() if view.name in names]
    land.create()
    partials_table.create(views)
    ensure_named(lake.rows, project_views())
    return views


def records(events, lsn, topic=None, first_offset=0):
    """Records of one micro-batch; an event given as bytes goes to `topic`."""
    rows = []
    for offset, one in enumerate(events, first_offset):
        to = topic or one["event_type"]
        value = one if isinstance(one, bytes) else json.dumps(one).encode()
        rows.append({"lsn": lsn, "topic": to, "partition": 0, "offset": offset, "timestamp": NOW, "value": value})
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


CONTROL = land.control(1, [], {}, NOW)


def on_workers(frame, lsn, views, window):
    """Land and compute a micro-batch as the application does with a large one."""
    taken = take(frame, EVERY_SCHEMA, FENCE, landed_on=NOW.date())
    land.commit(taken.landed, taken.records, lsn, CONTROL, FENCE)
    return process(taken, {lsn: taken.records}, views, window, SideInputs([], 0), NOW)


def stored(spark, lsn):
    """The rows of an lsn without what differs by place and time: partials, rejects and verdicts."""
    rows = spark.table(tables.SPEED_PARTIALS).where(f"lsn = {lsn} AND view NOT IN ('__batch__', '__ids__')")
    return Counter(
        repr({k: v for k, v in row.asDict(True).items() if k not in ("lsn", "span")}) for row in rows.collect()
    )


def totals(spark, view, measure, above=0):
    """What merging the partials of a counting view gives."""
    found = spark.sql(
        f"SELECT sum({view}.{measure}) FROM {tables.SPEED_PARTIALS} WHERE view = '{view}' AND lsn > {above}"
    )
    return found.first()[0]


def test_both_ways_write_the_same_rows(spark, hot_tables):
    twice = [*ORDERS, *PAGES, ORDERS[3], ORDERS[3]]
    mixed = pa.concat_tables([records(twice, 1), records([b"{"], 1, topic="order_placed", first_offset=90)])
    writer = InProcessWriter(EVERY_SCHEMA, FENCE)
    writer.land(mixed, 1, CONTROL)
    short = micro_batches.compute(writer, mixed, 1, hot_tables, IdWindow(3600, 1000), NOW)
    again = mixed.set_column(0, "lsn", pa.array([2] * mixed.num_rows, pa.int64()))
    frame = spark.createDataFrame(again).coalesce(1)
    long = on_workers(frame, 2, hot_tables, IdWindow(3600, 1000))
    assert stored(spark, 1) == stored(spark, 2)
    assert short.counts(1) == long.counts(2) == {"facts": 60, "rejects": 1, "duplicates": 2}
    landed = spark.table(tables.MASTER_LOG).where("kind = 'record'").toPandas()
    assert sorted(landed[landed.lsn == 1].value) == sorted(landed[landed.lsn == 2].value)


def test_a_duplicate_in_another_task_counts_once(spark, hot_tables):
    same = pa.concat_tables([records(ORDERS, 1), records(ORDERS, 1, topic="order_placed", first_offset=500)])
    frame = spark.createDataFrame(same).repartition(4)
    outcome = process(
        take(frame, EVERY_SCHEMA, FENCE), {1: 80}, hot_tables, IdWindow(3600, 1000), SideInputs([], 0), NOW
    )
    assert outcome.counts(1) == {"facts": 40, "rejects": 0, "duplicates": 40}
    assert totals(spark, "orders_by_colour_v1", "orders") == 40
    verdicts = partials_table.duplicates(1, 1)
    assert min(verdicts["offset"].to_pylist()) == 500, "the earliest in the log must win"


def test_a_duplicate_of_an_earlier_micro_batch_counts_once_also_after_a_restart(spark, hot_tables):
    window = IdWindow(3600, 1000)
    micro_batches.compute(InProcessWriter(EVERY_SCHEMA, FENCE), records(ORDERS, 1), 1, hot_tables, window, NOW)
    again = micro_batches.compute(InProcessWriter(EVERY_SCHEMA, FENCE), records(ORDERS, 2), 2, hot_tables, window, NOW)
    assert again.counts(2)["facts"] == 0
    restored = IdWindow(3600, 1000)
    partials_table.restore_window(restored, 2)
    later = micro_batches.compute(
        InProcessWriter(EVERY_SCHEMA, FENCE), records(ORDERS, 3), 3, hot_tables, restored, NOW
    )
    assert later.counts(3)["duplicates"] == 40
    assert totals(spark, "orders_by_colour_v1", "orders") == 40


def test_i10_a_crash_between_the_two_commits_is_caught_up(spark, hot_tables):
    writer = InProcessWriter(EVERY_SCHEMA, FENCE)
    whole = records(ORDERS, 1)
    writer.land(whole, 1, CONTROL)
    micro_batches.compute(writer, whole, 1, hot_tables, IdWindow(3600, 1000), NOW)
    lost = records([*PAGES, *ORDERS[:5]], 2)
    writer.land(lost, 2, CONTROL)
    window = IdWindow(3600, 1000)
    partials_table.restore_window(window, 2)
    catch_up.catch_up(spark, hot_tables, {}, 0, window, SideInputs([], 0), FENCE, lambda gap, outcome: None)
    assert covered(0).keys() == {1, 2}
    assert totals(spark, "orders_by_colour_v1", "orders") == 40, "the five repeated orders count once"
    assert spark.table(tables.SPEED_PARTIALS).where("view = 'sessions_v1'").count() == 20
    again = []
    catch_up.catch_up(
        spark, hot_tables, {}, 0, window, SideInputs([], 0), FENCE, lambda gap, outcome: again.append(gap)
    )
    assert again == [], "a second catch-up finds nothing"


def test_a_new_view_is_caught_up_and_obeys_the_verdicts_of_the_past(spark, hot_tables):
    old = [view for view in hot_tables if view.name != "orders_by_colour"]
    window, writer = IdWindow(3600, 1000), InProcessWriter(EVERY_SCHEMA, FENCE)
    for lsn in (1, 2):  # the second micro-batch repeats the first
        part = records(ORDERS, lsn, first_offset=lsn * 100)
        writer.land(part, lsn, CONTROL)
        micro_batches.compute(writer, part, lsn, old, window, NOW)
    catch_up.catch_up(spark, hot_tables, {}, 0, window, SideInputs([], 0), FENCE, lambda gap, outcome: None)
    assert totals(spark, "orders_by_colour_v1", "orders") == 40
    assert totals(spark, "orders_by_hour_v1", "orders") == 40, "the views that were there are not computed twice"
    assert len(partials_table.duplicates(1, 2)) == 40, "verdicts are not written twice"


def test_a_view_whose_pass_fails_is_set_aside_and_the_others_go_on(spark, hot_tables, monkeypatch):
    def broken(connection, view, *others):
        if view.name == "orders_by_colour":
            raise pa.ArrowInvalid("broken on purpose")
        return one(connection, view, *others)

    one = partials._computed
    window, writer, part = IdWindow(3600, 1000), InProcessWriter(EVERY_SCHEMA, FENCE), records(ORDERS, 1)
    writer.land(part, 1, CONTROL)
    with monkeypatch.context() as patch:
        patch.setattr(partials, "_computed", broken)
        outcome = micro_batches.compute(writer, part, 1, hot_tables, window, NOW)
    assert outcome.failed == {"orders_by_colour_v1": "ArrowInvalid: broken on purpose"}
    assert "orders_by_colour_v1" not in covered(0)[1].views
    assert totals(spark, "orders_by_hour_v1", "orders") == 40
    catch_up.catch_up(spark, hot_tables, {}, 0, window, SideInputs([], 0), FENCE, lambda gap, found: None)
    assert totals(spark, "orders_by_colour_v1", "orders") == 40, "the next start computes what it lacks"


def test_the_log_says_where_it_ends(spark, hot_tables):
    ranges = [land.Range("order_placed", 0, 0, 40)]
    part = records(ORDERS, 1)
    InProcessWriter(EVERY_SCHEMA, FENCE).land(part, 1, land.control(7, ranges, {"order_placed": "id"}, NOW))
    end = land.log_end()
    assert (end.lsn, end.epoch) == (1, 7)
    assert end.offsets == {("order_placed", 0): 40}
    assert end.topic_ids == {"order_placed": "id"}


def test_a_view_that_fails_on_the_workers_leaves_no_row_and_no_file_behind(spark, hot_tables):
    [whole] = [view for view in hot_tables if view.name == "orders_by_colour"]
    others = [view for view in hot_tables if view is not whole]
    key, expression = next(iter(whole.keys.items()))
    broken = replace(whole, keys={key: replace(expression, duckdb="error('broken on purpose')")})
    frame = spark.createDataFrame(records([*ORDERS, *PAGES, ORDERS[3]], 1)).repartition(2)
    outcome = on_workers(frame, 1, [broken, *others], IdWindow(3600, 1000))
    assert outcome.failed.keys() == {broken.column} and "broken on purpose" in outcome.failed[broken.column]
    assert outcome.counts(1) == {"facts": 60, "rejects": 0, "duplicates": 1}
    assert covered(0)[1].views == {view.column for view in others}
    assert spark.table(tables.SPEED_PARTIALS).where(f"view = '{broken.column}'").isEmpty()
    table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
    on_disk = {file.as_posix() for file in Path(tables.path(tables.SPEED_PARTIALS)).rglob("*.parquet")}
    assert on_disk == {uri.removeprefix("file://") for uri in table.file_uris()}, "files of the first pass must go"
    assert list(Path(tables.path(tables.SPEED_PARTIALS)).rglob("*.arrows")) == [], "and the facts between the halves"
