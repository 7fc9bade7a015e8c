"""C5: a sample is exact, says what it leaves out, and ends in time; a look at all goes on where it was."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger import store as ledger
from spark_jobs.quality.reconciliation.causes import UnbuiltCauses
from spark_jobs.quality.verification import answers, completeness, recompute_checks, scope, verify
from spark_jobs.quality.verification.findings import Finding, Law, State
from spark_jobs.quality.verification.sampled import SampledWay
from spark_jobs.quality.verification.time_limit import TimeLimit
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from tests.local_platform import START, Platform, change, market
from tests.unit.quality.spoilt import VIEWS, Edit, alter, lose, of_record

SEEDS = range(4)
LAW = Law("I1", "something holds", "things")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A log of three micro-batches is a large one."""
    monkeypatch.setenv("TIDEMARK_VERIFY_RECORDS", "8")
    monkeypatch.setenv("TIDEMARK_VERIFY_KEYS", "1")
    settings.cache_clear()
    yield
    settings.cache_clear()


def findings(platform: Platform, seed: int | None = 0) -> list[Finding]:
    scene = verify.Scene(ledger.open(), platform.views, seed)
    every = (*verify.checks(scene), *verify.of_builds(scene))
    return [law.looked(check) for law, check in every if law != completeness.OFFSETS]


def broken(platform: Platform) -> dict[str, str]:
    """What some sample finds."""
    found = (one for seed in SEEDS for one in findings(platform, seed))
    return {one.law: one.first[0] for one in found if one.state is State.BREACH}


def test_a_short_log_is_looked_at_as_a_whole(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_VERIFY_RECORDS", "1000")
    settings.cache_clear()
    chosen = scope.chosen(3, seed=1)
    assert (chosen.ranges, chosen.seed, chosen.is_large) == (((1, 3),), None, False)


def test_c5_a_sample_has_the_newest_records_and_some_from_before(platform: Platform) -> None:
    for _ in range(20):
        platform.land(market(1))
    ranges = {scope.chosen(platform.lsn, seed).ranges for seed in range(30)}
    assert all(last == (platform.lsn, platform.lsn) for *_, last in ranges)
    assert len({first for (first, _), _ in ranges}) > 10


def test_a_sound_platform_keeps_every_law_of_every_sample(platform: Platform) -> None:
    for seed in SEEDS:
        bad = [one for one in findings(platform, seed) if one.state not in (State.HOLDS, State.ABSENT)]
        assert bad == []


@pytest.mark.parametrize(
    ("table", "edit", "law"),
    [
        (tables.facts("order_placed"), lose(of_record(0)), completeness.ROWS.text),
        (tables.DUPLICATES, lose(of_record(4)), completeness.ROWS.text),
        (tables.MASTER_LOG, lose(of_record(1)), completeness.ROWS.text),
        (tables.facts("order_placed"), lose(of_record(0)), completeness.ENDS.text),
        (
            tables.facts("order_placed"),
            alter(of_record(3), quantity=77),
            "facts of the lsns 2 to 2 are what the log gives",
        ),
        (tables.DUPLICATES, alter(of_record(4), identity=b"0" * 16), "facts of the lsns 2 to 2 are what the log gives"),
        (tables.MASTER_LOG, alter(of_record(0), value=b"{}"), completeness.BYTES.text),
    ],
)
def test_one_wrong_row_is_found_by_some_sample_or_by_the_counts(
    platform: Platform, table: str, edit: Edit, law: str
) -> None:
    change(table, edit)
    assert law in broken(platform)


def test_all_of_a_large_log_is_held_to_its_facts_portion_by_portion(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_PER_FILE", 8)
    laws = {one.law: one.state for one in findings(platform, seed=None)}
    of_lsns = {law: state for law, state in laws.items() if law.startswith("facts of the lsns")}
    assert of_lsns == {recompute_checks.law_of_lsns(lsn, lsn).text: State.HOLDS for lsn in (1, 2)}


def sampled(platform: Platform, view_id: str, seed: int, edit: Edit = lambda rows: rows) -> Finding:
    """I3 of the keys of a sample, with the files' answer, edited, in the place of Thrift's."""
    store, view = ledger.open(), platform.views.served[view_id]
    merged = LocalAnswers(platform.views, store.sources(0), platform.lsn, START)
    chosen = scope.Scope(((1, platform.lsn),), seed, is_large=True)
    way = SampledWay(merged, settings().home, scope=chosen, views=list(platform.views.served.values()))
    where = chosen.condition(view, store.sources(0)[platform.views.by_name[view_id].id], Dialect.DUCKDB)
    answer = merged.con.sql(merged.answer(view)).to_arrow_table()
    merged.con.register("shown", type(answer).from_pylist(edit(answer.to_pylist()), schema=answer.schema))
    served = merged.con.sql(f"SELECT * FROM shown WHERE {where}").to_arrow_table()
    causes = lambda cut: UnbuiltCauses(cut, platform.lsn)  # noqa: E731
    return answers.compared(view, served, way.expected(view), merged, causes, where)


@pytest.mark.parametrize("view_id", VIEWS)
def test_the_keys_of_a_sample_are_compared_with_every_record_that_matters(platform: Platform, view_id: str) -> None:
    found = [sampled(platform, view_id, seed) for seed in SEEDS]
    assert {one.state for one in found} <= {State.HOLDS, State.ABSENT}, found
    assert any(one.checked for one in found)
    by = "recomputing" if view_id == "late_and_rejected" else "the oracle"
    assert all(one.note.startswith(f"by {by}; ") for one in found)


def test_a_wrong_row_of_a_sampled_key_is_named(platform: Platform) -> None:
    found = [
        sampled(
            platform, "word_count", seed, lambda rows: [{**row, "occurrences": row["occurrences"] + 1} for row in rows]
        )
        for seed in SEEDS
    ]
    assert State.BREACH in {one.state for one in found}


def test_what_is_at_work_when_the_time_is_over_ends_and_says_so() -> None:
    def endless() -> Finding:
        signal.pause()
        raise AssertionError

    limit = TimeLimit(0.2)
    assert limit.looked(LAW, endless).state is State.SKIPPED
    assert "were over" in limit.looked(LAW, lambda: LAW.finding(1, [])).note
    assert TimeLimit(None).looked(LAW, lambda: LAW.finding(1, [])).state is State.HOLDS


def test_a_look_at_all_that_was_cut_off_goes_on_where_it_was(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen, kept = ledger.open(), list[str](), dict[str, Finding]()
    laws = [Law("I1", f"law {number}", "things") for number in range(3)]

    def check(law: Law) -> Finding:
        seen.append(law.text)
        if seen == ["law 0", "law 1"]:
            raise KeyboardInterrupt
        return law.finding(1, [])

    every = [(law, lambda law=law: check(law)) for law in laws]
    monkeypatch.setattr(verify, "checks", lambda scene: every)
    monkeypatch.setattr(verify, "of_builds", lambda scene: [])

    def look() -> Any:
        progress = verify.Progress(lambda *_: None, lambda one: kept.update({one.key: one}), kept)
        return verify.verify(store, Views(()), progress, None, TimeLimit(None))

    with pytest.raises(KeyboardInterrupt):
        look()
    assert [one.law for one in look()] == ["law 0", "law 1", "law 2"]
    assert seen == ["law 0", "law 1", "law 1", "law 2"]


def test_the_ledger_keeps_what_was_found_and_which_look_was_cut_off(platform: Platform) -> None:
    store = ledger.open()
    first = store.begin_verification("all", 7)
    store.record_finding(first.id, LAW.key, {"state": "holds"})
    assert store.begin_verification("all", 8).id == first.id
    sample = store.begin_verification("sample", 8)
    store.finish_verification(first.id, 0)
    last = store.last_verification()
    assert last is not None and last.id == sample.id and last.exit_code is None
    assert store.begin_verification("all", 9).id > sample.id
