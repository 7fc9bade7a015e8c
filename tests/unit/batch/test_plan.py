"""The cut, the scope and the work of a run, as pure functions."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import example, given
from hypothesis import strategies as st

from spark_jobs.batch.build_tasks import BuildMode, build_task
from spark_jobs.batch.plan import FROM_FACTS
from spark_jobs.contracts import row_types
from spark_jobs.expressions.duckdb_session import shared
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from spark_jobs.storage.coverage import Computed, holes, landed, reach
from spark_jobs.storage.coverage import covered as covered_above
from spark_jobs.storage.lsn_ranges import MOST_RANGES, covering, joined, scope

AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def covered(**by_view: set[int]) -> dict[int, Computed]:
    lsns = set().union(*by_view.values())
    return {n: Computed(frozenset(v for v, has in by_view.items() if n in has), AT) for n in lsns}


def test_the_cut_is_the_last_lsn_with_nothing_missing_below() -> None:
    assert reach(0, {1, 2, 3}, covered(a={1, 2, 3}), ["a"])[0] == 3
    assert reach(0, {1, 2, 4}, covered(a={1, 2, 4}), ["a"])[0] == 2, "lsn 3 is not landed"
    assert reach(0, {1, 2, 3}, covered(a={1, 2}), ["a"])[0] == 2, "lsn 3 has no partials yet"
    assert reach(5, set(), {}, ["a"])[0] == 5
    assert reach(5, {7}, covered(a={7}), ["a"])[0] == 5


def test_a_view_that_lags_holds_the_cut_and_is_named_a_new_one_is_not() -> None:
    assert reach(0, {1, 2, 3}, covered(a={1, 2, 3}, b={1}), ["a", "b", "new"]) == (1, {"b": 2})


def test_holes_are_lsns_past_the_cut_without_the_views_partials() -> None:
    assert holes(1, 4, covered(a={2, 3, 4}, b={2, 4}), "b") == [3]
    assert holes(4, 4, {}, "b") == []


@given(st.sets(st.integers(1, 5000), max_size=900))
@example(set(range(1, 5000, 7)))
def test_ranges_cover_every_lsn_and_are_few(lsns: set[int]) -> None:
    """Joined here, or in DuckDB, which gives no more rows than there are ranges."""
    ranges = joined((lsn, lsn) for lsn in lsns)
    assert all(any(first <= n <= last for first, last in ranges) for n in lsns)
    assert len(ranges) <= MOST_RANGES
    if len(lsns) < MOST_RANGES:
        assert sum(last - first + 1 for first, last in ranges) == len(lsns), "nothing more than asked for"
    con = shared().cursor()
    con.register("given", pa.table({"lsn": pa.array(sorted(lsns) * 2, pa.int64())}))
    assert covering(con, "FROM given") == ranges


def test_the_scope_is_what_is_new_and_the_older_lsns_of_the_days() -> None:
    todo = scope(10, 12, [(7, 7), (3, 4), (4, 4), (11, 12)])
    assert todo.sql() == "lsn BETWEEN 3 AND 4 OR lsn BETWEEN 7 AND 7 OR lsn BETWEEN 11 AND 12"
    assert todo.sql(only_new=True) == "lsn BETWEEN 11 AND 12"
    assert todo.sql_history() == "lsn <= 10 AND NOT (lsn BETWEEN 3 AND 4 OR lsn BETWEEN 7 AND 7)"
    assert scope(10, 10).is_empty and scope(10, 10).sql() == "FALSE"


def run(mode: str = "changed", days: tuple[str, ...] = ()) -> Run:
    return Run(run_id="r", summary={}, mode=mode, days=list(days), cut=9, cut_at=AT)


BUILT = Source(batch_version=3, results_version=4, cut=5, horizon=None)
NEW = {"order_placed": ["2026-01-05"]}


def test_each_view_gets_the_least_work_that_is_right() -> None:
    bucketed, merged, sequence, other = (
        project_views()[name] for name in ("orders_by_day", "orders_by_colour", "trades", "word_count")
    )
    assert bucketed.bucket and not merged.bucket
    assert build_task(bucketed, run(), UNBUILT, NEW, {}).mode is BuildMode.FULL
    assert build_task(bucketed, run("full"), BUILT, NEW, {}).mode is BuildMode.FULL
    new = build_task(bucketed, run(), BUILT, NEW, {})
    assert (new.mode, new.days, new.touched) == (BuildMode.MERGE, (), ("2026-01-05",))
    again = build_task(bucketed, run(days=("2026-01-01",)), BUILT, NEW, {"order_placed": ["2026-01-02"]})
    assert (again.mode, again.days) == (BuildMode.BUCKETS, ("2026-01-01", "2026-01-02"))
    assert again.touched == ("2026-01-01", "2026-01-02", "2026-01-05")
    assert build_task(merged, run(), BUILT, NEW, {}).mode is BuildMode.MERGE
    assert build_task(sequence, run(), BUILT, NEW, {}).mode is BuildMode.RESOLVE
    assert build_task(other, run(days=("2026-01-01",)), BUILT, NEW, {}).mode is BuildMode.SAME


def test_a_replay_from_facts_forces_its_days_on_the_views_it_names_alone() -> None:
    bucketed, merged, other = (
        project_views()[name] for name in ("orders_by_day", "orders_by_colour", "orders_by_hour")
    )
    replay = run(days=("2026-01-01",))
    replay.summary = {FROM_FACTS: [bucketed.id, merged.id]}
    forced = build_task(bucketed, replay, BUILT, {}, {})
    assert (forced.mode, forced.days) == (BuildMode.BUCKETS, ("2026-01-01",))
    assert build_task(merged, replay, BUILT, {}, {}).mode is BuildMode.FULL
    assert build_task(other, replay, BUILT, {}, {}).mode is BuildMode.SAME
    assert build_task(other, replay, BUILT, NEW, {}).touched == ("2026-01-05",), "what is new is built all the same"


def test_replaced_facts_rebuild_what_cannot_be_taken_out_again() -> None:
    changed = {"order_placed": ["2026-01-02"]}
    for name in ("orders_by_colour", "trades"):
        assert build_task(project_views()[name], run(), BUILT, {}, changed).mode is BuildMode.FULL


def test_coverage_is_read_from_the_control_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    settings.cache_clear()
    assert (landed(0), covered_above(0)) == ({}, {})
    for lsn, views in ((1, ["a"]), (2, ["a", "b"]), (1, ["b"]), (3, ["a"])):
        control = {"views": views, "finished_at": AT if views[0] == "a" else None, "ids": None}
        rows = [{"view": "__batch__", "lsn": lsn, "control": control}]
        rows.append({"view": "__ids__", "lsn": lsn, "control": {"views": None, "finished_at": None, "ids": b"\0" * 16}})
        schema = pa.schema([("view", pa.string()), ("lsn", pa.int64()), ("control", row_types.CONTROL)])
        write_deltalake(tables.path(tables.SPEED_PARTIALS), pa.Table.from_pylist(rows, schema=schema), mode="append")
    found = covered_above(1)
    settings.cache_clear()
    assert {lsn: sorted(one.views) for lsn, one in found.items()} == {2: ["a", "b"], 3: ["a"]}
    assert found[2].at == AT
