"""Each alarm rings by its cause, and its end clears it; those of Kafka are in tests/e2e/test_alarms.py."""

import os
import re
import shutil
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.ledger.alarms import RUNBOOK, runbook_of
from spark_jobs.ledger.schema import Heartbeat
from spark_jobs.ledger.store import Store
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.retire import retire
from spark_jobs.registry.views import Views
from spark_jobs.settings import ROOT, settings
from spark_jobs.speed import alarms, alerts, catalog_names, housekeeping, land, metrics, partials_table, watch
from spark_jobs.speed.catalog_names import NamesForReaders
from spark_jobs.speed.housekeeping import Housekeeping
from spark_jobs.speed.status import COMPONENT, UNNAMED, Status
from spark_jobs.storage.fencing import Fence
from tests.publishing import VIEWS, Server, computed
from tests.ringing import awaited, ringing

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


class Rows:
    """An answer."""

    def __init__(self, rows: list[tuple[str, str, bool]]) -> None:
        self.rows = rows
