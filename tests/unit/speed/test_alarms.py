"""Each alarm rings by its cause, and its end clears it; those of Kafka are in tests/e2e/test_alarms.py."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.alarms import RUNBOOK, runbook_of
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.schema import Heartbeat, Replay, Run, Verification
from spark_jobs.ledger.store import Store
from spark_jobs.ledger.verifications import SAMPLE
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.retire import retire
from spark_jobs.quality.verification.findings import Finding, State
from spark_jobs.registry.views import Views
from spark_jobs.settings import ROOT, settings
from spark_jobs.speed import alarms, alerts, catalog_names, housekeeping, land, metrics, partials_table, watch
from spark_jobs.speed.alarms import Backlog, settle
from spark_jobs.speed.catalog_names import NamesForReaders
from spark_jobs.speed.continuity import EMPTY
from spark_jobs.speed.housekeeping import Housekeeping
from spark_jobs.speed.status import COMPONENT, UNNAMED, Status
from spark_jobs.storage.fencing import Fence
from tests.platform import await_true
from tests.publishing import VIEWS, Server, computed

PARTS = {
    UNNAMED,
    catalog_names.LOST,
    catalog_names.LEFT,
    alerts.PROBLEM,
    housekeeping.PROBLEM,
    metrics.PROBLEM,
    watch.PROBLEM,
}
KINDS = {*alarms.KINDS, *PARTS, "view set aside", "view not served"}
WAIT = 60.0


@pytest.fixture
def store(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIDEMARK_HEARTBEAT_SECONDS", "0.05")
    monkeypatch.setenv("TIDEMARK_DISK_ALARM_SHARE", "0")
    settings.cache_clear()
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def status(store: Store) -> Status:
    """An application that runs and is well."""
    told = Status(store)
    told.set(state="running")
    return told


@pytest.fixture
def beating(status: Status) -> Iterator[Status]:
    """It says so again and again, as it does in its process."""
    status.keep_beating()
    yield status
    status.close()


def ringing(store: Store) -> dict[str, str]:
    """Name -> message, with nothing unread in Kafka."""
    settle(store, Backlog(EMPTY))
    return {alarm.name: alarm.message for alarm in store.raised_alarms()}


def awaited(store: Store, condition: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """What rings when the condition holds at last."""
    seen = dict[str, str]()

    def holds() -> bool:
        seen.clear()
        seen.update(ringing(store))
        return condition(seen)

    await_true(holds, WAIT, "it does not come to that", every=0.05)
    return seen


def test_every_kind_of_alarm_has_its_section_in_the_runbook_and_no_section_lacks_an_alarm() -> None:
    text = (ROOT / RUNBOOK).read_text()
    anchors = {f"{RUNBOOK}#{heading.lower().replace(' ', '-')}" for heading in re.findall(r"^## (.+)$", text, re.M)}
    assert anchors == {runbook_of(kind) for kind in KINDS}


def test_an_application_that_is_well_rings_nothing(store: Store, status: Status) -> None:
    assert ringing(store) == {}


def test_silence_rings_until_the_next_heartbeat(store: Store, status: Status) -> None:
    with store.write() as session:
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        session.merge(Heartbeat(component=COMPONENT, at=long_ago, payload={"state": "running", "alarms": {}}))
    assert ringing(store)["heartbeat"].startswith("silent for 3")
    status.beat()
    assert ringing(store) == {}


def test_a_stop_rings_with_its_error_until_the_application_runs_again(store: Store, status: Status) -> None:
    """One alarm, however often the supervisor starts it meanwhile."""
    for _ in range(2):
        status.set(state="stopped", error="the log continues at offset 7")
        assert ringing(store) == {"heartbeat": "the log continues at offset 7"}
        status = Status(store)
        assert list(ringing(store)) == ["heartbeat"], "it starts, and may stop again"
    status.set(state="running")
    assert ringing(store) == {} and len(store.alarms(newest=9)) == 1


def test_c3_a_stall_rings_until_the_micro_batch_is_complete(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    status.batch_begins()
    status.beat()
    assert ringing(store) == {}
    monkeypatch.setattr("spark_jobs.speed.status.STALLED_SECONDS", 0.0)
    assert ringing(store)["stall"].startswith("a micro-batch has been at work for")
    status.batch(1, 5, {}, {})
    assert ringing(store) == {}


def test_a_view_set_aside_rings_with_its_reason_until_the_next_start(store: Store, status: Status) -> None:
    status.views_aside["orders_v1"] = "overflow"
    status.beat()
    assert ringing(store) == {"view set aside: orders_v1": "overflow"}
    Status(store)
    assert ringing(store) == {}


def test_rejects_ring_by_their_share_of_their_own_topic(store: Store, status: Status) -> None:
    status.batch(1, 1000, {}, {}, {"order_placed": 900, "page_viewed": 100}, {"page_viewed": 20})
    assert ringing(store) == {"quarantine: page_viewed": "20 of the last 100 records are rejected"}
    status.batch(2, 200, {}, {}, {"page_viewed": 200}, {})
    assert ringing(store) == {}, "the producer is mended"


def test_a_few_records_say_nothing_about_the_share_of_rejects(store: Store, status: Status) -> None:
    status.batch(1, 2, {}, {}, {"order_placed": 2}, {"order_placed": 2})
    assert ringing(store) == {}


def test_rejects_of_before_the_last_minutes_do_not_count(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    status.batch(1, 100, {}, {}, {"order_placed": 100}, {"order_placed": 100})
    assert ringing(store)
    monkeypatch.setattr("spark_jobs.speed.status.RECENT", timedelta(0))
    status.beat()
    assert ringing(store) == {}


def test_housekeeping_rings_while_its_tables_cannot_be_read(store: Store, beating: Status) -> None:
    with Housekeeping(store, [], beating, nullcontext(), Fence(1), lambda: None, lambda upto: 0):  # type: ignore[arg-type]
        assert "housekeeping" in awaited(store, bool)
        land.create()
        partials_table.create([])
        awaited(store, lambda now: not now)


def test_b10_a_name_that_somebody_dropped_rings_until_a_look_finds_all(
    store: Store, beating: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    computed({})
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(catalog_names, "project_views", lambda: VIEWS)
    monkeypatch.setattr(catalog_names, "connect", lambda: nullcontext(server))
    monkeypatch.setattr(catalog_names, "ask", lambda to, sql: Rows(to(sql)))
    names = NamesForReaders(store, beating)
    awaited(store, lambda now: "serving.word_count" in server.texts)
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 1.0)
    del server.texts["serving.word_count"]
    assert "serving.word_count" in awaited(store, bool)[catalog_names.LOST]
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 0.05)
    awaited(store, lambda now: not now)
    server.fatal = "SHOW"
    assert awaited(store, bool) == {UNNAMED: "the server is gone"}
    server.fatal = None
    awaited(store, lambda now: not now)
    names.close()


def test_a_name_whose_view_nobody_computes_rings_until_it_is_retired(
    store: Store, beating: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    computed({})
    ensure_serving(server, VIEWS, store)
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(catalog_names, "project_views", lambda: Views(VIEWS.all[:1]))
    monkeypatch.setattr(catalog_names, "connect", lambda: nullcontext(server))
    monkeypatch.setattr(catalog_names, "ask", lambda to, sql: Rows(to(sql)))
    names = NamesForReaders(store, beating)
    assert awaited(store, bool)[catalog_names.LEFT].startswith("serving.word_count answers by its last build")
    store.define({"word_count": "its text"})
    retire(server, Views(VIEWS.all[:1]), store, "word_count")
    awaited(store, lambda now: not now)
    names.close()


class Rows:
    """An answer."""

    def __init__(self, rows: list[tuple[str, str, bool]]) -> None:
        self.rows = rows


def audited(store: Store, run_id: str, *, passed: bool, **causes: int) -> None:
    """A run with the gate's verdict, and the rows of one view that differ."""
    store.begin_run(Run(run_id=run_id, cut=1))
    store.progress(run_id, "audit", **{AGREEMENT: [{"view": "orders_by_day", "causes": causes}]})
    store.record_audit(run_id, passed, docs_url="file:///docs")


def test_a_failed_gate_rings_until_a_later_run_passes(store: Store, status: Status) -> None:
    audited(store, "monday", passed=False)
    assert "run monday did not pass its audit" in ringing(store)["gate"]
    audited(store, "tuesday", passed=True)
    assert ringing(store) == {}


def test_a_run_that_failed_rings_until_it_goes_on_or_another_begins(store: Store, status: Status) -> None:
    store.begin_run(Run(run_id="monday", cut=1))
    store.fail_run("monday", "the disk was full")
    assert ringing(store) == {"run failed": "run monday failed after its step plan: the disk was full"}
    store.active_run("monday")
    assert ringing(store) == {}
    store.fail_run("monday", "the disk was full")
    store.begin_run(Run(run_id="tuesday", cut=1))
    assert ringing(store) == {}


def test_a_run_that_takes_too_long_rings_and_one_that_waits_for_people_does_not(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.begin_run(Run(run_id="monday", cut=1))
    assert ringing(store) == {}
    monkeypatch.setenv("TIDEMARK_RUN_ALARM_HOURS", "0")
    settings.cache_clear()
    assert "run monday began 0.0 hours ago; the last step that ended is plan" in ringing(store)["run late"]
    store.progress("monday", "publish")
    store.begin_replay(Replay(run_id="again", wanted={}, reason="", asked_by="ada", preview={}))
    store.begin_run(Run(run_id="again", cut=1))
    assert ringing(store) == {}


def test_a_nightly_run_that_cannot_begin_rings_until_one_does(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_RUN_MISSING_ALARM_HOURS", "0")
    settings.cache_clear()
    assert ringing(store) == {}, "nothing was ever published"
    store.finish_publication(store.begin_publication("initial", {}, cut=0).id)
    assert "no batch run has begun for 0.0 hours" in ringing(store)["run missing"]
    store.begin_run(Run(run_id="monday", cut=1))
    store.progress("monday", "publish")
    assert "no batch run has begun for 0.0 hours; the last one is monday" in ringing(store)["run missing"]
    monkeypatch.setenv("TIDEMARK_RUN_MISSING_ALARM_HOURS", "30")
    settings.cache_clear()
    assert ringing(store) == {}
    with store.write() as session:
        session.get_one(Run, "monday").started_at -= timedelta(hours=31)
    assert "for 31.0 hours; the last one is monday" in ringing(store)["run missing"]
    store.begin_run(Run(run_id="tuesday", cut=1))
    assert ringing(store) == {}


def verified(store: Store, code: int | None, **states: str) -> None:
    """A look that ended with an exit code, or was cut off."""
    look = store.begin_verification(SAMPLE, 1)
    for invariant, state in states.items():
        finding = Finding(invariant, "a sentence", State(state))
        store.record_finding(look.id, finding.key, asdict(finding))
    if code is not None:
        store.finish_verification(look.id, code)


def test_a_broken_promise_rings_until_a_look_finds_that_all_hold(store: Store, status: Status) -> None:
    verified(store, 0, I1="holds")
    assert ringing(store) == {}
    verified(store, 1, I1="holds", I3="breach", I7="breach")
    message = ringing(store)["verify"]
    assert "breach of I3, I7" in message
    for code in (None, 2):
        verified(store, code, I3="unable")
        assert ringing(store) == {"verify": message}, "one that could not look says nothing"
    with store.write() as session:
        session.execute(delete(Verification))
    assert ringing(store) == {"verify": message}, "an erasure forgets what was found"
    verified(store, 0, I3="holds")
    assert ringing(store) == {}


def test_unexplained_rows_ring_until_a_later_audit_has_none(store: Store, status: Status) -> None:
    audited(store, "monday", passed=False, **{UNEXPLAINED: 3})
    message = "3 rows differ from speed for no known cause (run monday)"
    assert ringing(store)["agreement: orders_by_day"] == message
    audited(store, "tuesday", passed=True, duplicate=3)
    assert ringing(store) == {}


def test_a_view_that_is_held_back_rings_until_a_run_publishes_it(store: Store, status: Status) -> None:
    audited(store, "monday", passed=True)
    store.progress("monday", "publish", held_back={"word_count": 7})
    assert ringing(store) == {"held back: word_count": "it keeps its old source: it has no speed partials at lsn 7"}
    audited(store, "tuesday", passed=True)
    assert ringing(store) == {}


def test_a_disk_that_fills_rings_until_there_is_room(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage, ballast = shutil.disk_usage(settings().home), 2**29
    monkeypatch.setenv("TIDEMARK_DISK_ALARM_SHARE", str((usage.free - ballast / 2) / usage.total))
    settings.cache_clear()
    assert ringing(store) == {}
    with (settings().home / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, ballast)
    assert "are free at" in ringing(store)["disk"]
    Path(file.name).unlink()
    assert ringing(store) == {}
