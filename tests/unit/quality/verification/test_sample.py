"""C5: a sample is exact, says what it leaves out, and ends in time; a look at all goes on where it was."""

import signal
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.engine.chained_view import stored_of
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
from tests.local_platform import START, Platform, change, event
from tests.unit.quality.spoilt import VIEWS, Edit, alter, findings, lose, of_record

LAW = Law("I1", "something holds", "things")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A log of three micro-batches is a large one."""
    monkeypatch.setenv("TIDEMARK_VERIFY_RECORDS", "8")
    monkeypatch.setenv("TIDEMARK_VERIFY_KEYS", "1")
    settings.cache_clear()
    yield
    settings.cache_clear()


def seed_of(platform: Platform, lsn: int, offset: int) -> int:
    """One that looks at this lsn, beside the newest, and of its records at that of the offset."""

    def looks(seed: int) -> bool:
        chosen = scope.chosen(platform.lsn, seed)
        return chosen.ranges[0] == (lsn, lsn) and has(chosen.some_of(lsn, lsn), offset)

    return next(filter(looks, count()))


def has(some: scope.OneOf, offset: int) -> bool:
    return offset % some.many == some.rest


def test_a_short_log_is_looked_at_as_a_whole(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_VERIFY_RECORDS", "1000")
    settings.cache_clear()
    chosen = scope.chosen(3, seed=1)
    assert (chosen.ranges, chosen.seed, chosen.is_large) == (((1, 3),), None, False)


def test_c5_a_sample_has_the_newest_records_and_some_from_before(platform: Platform) -> None:
    for _ in range(5):
        platform.land([event("page_viewed") for _ in range(3)])
    ranges = {scope.chosen(platform.lsn, seed).ranges for seed in range(30)}
    assert {last for _, last in ranges} == {(8, 8)}
    assert {first for first, _ in ranges} == {(lsn, lsn) for lsn in range(1, 8)}


def test_a_sound_platform_keeps_every_law_of_a_sample(platform: Platform) -> None:
    found = findings(platform, seed=seed_of(platform, 2, 3))
    assert [one for one in found if one.state not in (State.HOLDS, State.ABSENT)] == []
    assert sum(one.state is State.HOLDS for one in found) > 10


def test_a_sample_of_what_is_not_built_yet_says_nothing_of_the_facts_that_are(platform: Platform) -> None:
    for _ in range(2):
        platform.land([event("page_viewed") for _ in range(9)])
    [found] = findings(platform, recompute_checks.FACTS.text, seed_of(platform, platform.lsn - 1, 0))
    assert (found.state, found.note) == (State.ABSENT, "none of the sample's records is built yet")


OF_LSN_2 = "facts of the lsns 2 to 2 are what the log gives"


@pytest.mark.parametrize(
    ("table", "edit", "law", "lsn", "offset"),
    [
        (tables.facts("order_placed"), lose(of_record(0)), completeness.ROWS.text, 2, 0),
        (tables.DUPLICATES, lose(of_record(4)), completeness.ROWS.text, 1, 4),
        (tables.MASTER_LOG, lose(of_record(1)), completeness.ROWS.text, 2, 1),
        (tables.facts("order_placed"), lose(of_record(0)), completeness.ENDS.text, 1, 0),
        (tables.facts("order_placed"), alter(of_record(3), quantity=77), OF_LSN_2, 2, 3),
        (tables.DUPLICATES, alter(of_record(4), identity=b"0" * 16), OF_LSN_2, 2, 4),
        (tables.MASTER_LOG, alter(of_record(0), value=b"{}"), completeness.BYTES.text, 1, 0),
    ],
)
def test_one_wrong_row_of_a_sample_is_found_and_wherever_it_is_a_wrong_count(
    platform: Platform, table: str, edit: Edit, law: str, lsn: int, offset: int
) -> None:
    change(table, edit)
    assert [one.state for one in findings(platform, law, seed_of(platform, lsn, offset))] == [State.BREACH]


def test_of_a_micro_batch_larger_than_a_sample_some_records_are_held_to_the_log(platform: Platform) -> None:
    """One of three of eight; those that repeat an event that is not among them are duplicates all the same."""
    ids = [f"00000000-0000-4000-8000-{number:012}" for number in range(100, 104)]
    first = platform.offsets["order_placed"]
    lsn = platform.land([event("order_placed", START, one) for one in (*ids, *ids)])
    store = ledger.open()
    store.finish_publication(store.begin_publication("batch", platform.build(), cut=lsn).id)
    platform.land([event("page_viewed")])
    law, seeds = recompute_checks.law_of_lsns(lsn, lsn).text, [seed_of(platform, lsn, first + n) for n in range(3)]
    sound = [found for seed in seeds for found in findings(platform, law, seed)]
    assert [(found.state, found.note) for found in sound] == [(State.HOLDS, "one of 3 records")] * 3
    assert sum(found.checked for found in sound) == 3 * len(ids), "facts, duplicates and what is noted of those"
    change(tables.DUPLICATES, lose(of_record(first + 4)))
    spoilt = [found.state for seed in seeds for found in findings(platform, law, seed)]
    assert spoilt == [State.HOLDS, State.BREACH, State.HOLDS]


def test_all_of_a_large_log_is_held_to_its_facts_portion_by_portion(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_PER_FILE", 8)
    found = {one.law: one.state for one in findings(platform, "facts of the lsns")}
    assert found == {recompute_checks.law_of_lsns(lsn, lsn).text: State.HOLDS for lsn in (1, 2)}


class Sampled:
    """I3 of the keys of a sample, with the files' answers in the place of Thrift's."""

    def __init__(self, platform: Platform, seed: int) -> None:
        self.sources, self.views = ledger.open().sources(0), platform.views.served
        self.merged = LocalAnswers(platform.views, self.sources, platform.lsn, START)
        self.scope = scope.Scope(((1, platform.lsn),), seed, is_large=True)
        self.way = SampledWay(self.merged, settings().home, scope=self.scope, views=list(self.views.values()))

    def finding(self, view_id: str, edit: Edit = lambda rows: rows) -> Finding:
        view, con = self.views[view_id], self.merged.con
        where = self.scope.condition(view, self.sources[stored_of(view).id], Dialect.DUCKDB)
        answer = con.sql(self.merged.answer(view)).to_arrow_table()
        con.register("shown", pa.Table.from_pylist(edit(answer.to_pylist()), schema=answer.schema))
        served = con.sql(f"SELECT * FROM shown WHERE {where}").to_arrow_table()
        causes = partial(UnbuiltCauses, head=self.merged.head)
        return answers.compared(view, served, self.way.expected(view), self.merged, causes, where)


def test_the_keys_of_a_sample_are_compared_with_every_record_that_matters(platform: Platform) -> None:
    sampled = Sampled(platform, seed=3)
    found = {view_id: sampled.finding(view_id) for view_id in VIEWS}
    assert {one.state for one in found.values()} <= {State.HOLDS, State.ABSENT}, found
    by = {view_id: one.note.partition(";")[0] for view_id, one in found.items()}
    assert by == dict.fromkeys(VIEWS, "by the oracle") | {"late_and_rejected": "by recomputing"}
    whole = len(sampled.merged.con.sql(sampled.merged.answer(sampled.views["word_count"])).fetchall())
    assert 0 < found["word_count"].checked < whole


def test_a_wrong_row_of_a_sampled_key_is_named(platform: Platform) -> None:
    more: Edit = lambda rows: [{**row, "occurrences": row["occurrences"] + 1} for row in rows]  # noqa: E731
    found = Sampled(platform, seed=3).finding("word_count", more)
    assert found.state is State.BREACH and found.breaches == found.checked


def test_what_is_at_work_when_the_time_is_over_ends_and_says_so() -> None:
    def endless() -> Finding:
        signal.pause()
        raise AssertionError

    limit = TimeLimit(0.2)
    assert limit.looked(LAW, endless).state is State.SKIPPED
    assert "were over" in limit.looked(LAW, lambda: LAW.finding(1, [])).note
    assert TimeLimit(10.0).half.seconds == 5
    assert TimeLimit(None).looked(LAW, lambda: LAW.finding(1, [])).state is State.HOLDS


def test_no_alarm_goes_off_while_the_finding_of_an_error_is_made() -> None:
    """Else the end of the time would end the verification, where it comes just after an error."""

    class Told(Exception):
        def __str__(self) -> str:
            return f"{signal.getitimer(signal.ITIMER_REAL)[0]:.0f} s to the alarm"

    def fails() -> Finding:
        raise Told

    found = TimeLimit(60.0).looked(LAW, fails)
    assert (found.state, found.note) == (State.UNABLE, "Told: 0 s to the alarm")


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
