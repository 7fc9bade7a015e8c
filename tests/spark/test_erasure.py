"""I18: an erasure reaches the log, facts, quarantine, batch, partials, pins and the ledger; a rebuild brings nothing
back, and what the views answer is what they would if the records had never been sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from spark_jobs.contracts.erasures import Subject
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action
from spark_jobs.ledger.schema import Erasure
from spark_jobs.publication import erasure, pins
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.quality.reconciliation.causes import REVISED
from spark_jobs.serving import erasing, revising
from spark_jobs.settings import settings
from spark_jobs.speed import compaction
from spark_jobs.speed.erase import Eraser
from spark_jobs.storage import coverage, log_reader, tables
from spark_jobs.storage.fencing import Fence
from tests import traces
from tests.spark.lake import Lake, event
from tests.spark.test_corrections import SAID, said_of
from tests.spark.test_schemas_in_force import causes, stands

pytestmark = pytest.mark.spark
VIEWS = (
    "page_views_per_user_hour",
    "sessions",
    "vitals_by_person_hour",
    "user_settings",
    "user_card",
    "late_and_rejected",
)
USER, NAME, OTHER = 720_575_940_379, "Vanishing Vera", 8


def page(number: int, user: int, minute: int, **fields: Any) -> dict[str, Any]:
    at = f"2026-01-05T09:{minute:02d}:00.000Z"
    return event("page_viewed", number, user_id=user, occurred_at=at, url=f"/u/{user}", referrer=None, **fields)


def profile(number: int, user: int, name: str) -> dict[str, Any]:
    return event("profile_changed", number, user_id=user, name=name, occurred_at="2026-01-05T08:00:00.000Z")


def of_others() -> list[dict[str, Any]]:
    vitals = event("vitals_measured", 11, person_id=OTHER, occurred_at="2026-01-05T09:10:00.000Z")
    return [page(1, OTHER, 1), page(2, OTHER, 20), profile(3, OTHER, "Otto"), vitals]


def about_her() -> list[dict[str, Any]]:
    vitals = event("vitals_measured", 12, person_id=USER, occurred_at="2026-01-05T09:10:00.000Z")
    return [page(4, USER, 2), page(5, USER, 30), profile(6, USER, NAME), vitals]


def refused() -> list[bytes]:
    """What no schema accepts, and names her all the same: one with a field too few, one that breaks off."""
    wrong = page(7, USER, 3)
    del wrong["url"]
    return [
        json.dumps({**wrong, "note": NAME}).encode(),
        f'{{"user_id": {USER}, "name": "{NAME}'.encode() + b'", "x": ',
    ]


def served(lake: Lake) -> dict[str, Any]:
    return {name: lake.served(name) for name in VIEWS if name != "late_and_rejected"}


@contextmanager
def speed_application(lake: Lake) -> Iterator[None]:
    """Answers what an erasure asks for, as the application's housekeeping does."""
    ended = threading.Event()

    def answer() -> None:
        while not ended.wait(0.05):
            if (request := lake.store.next_request(erasure.ERASE)) is not None:
                known = log_reader.read_schema_history().revisions
                gone = Eraser(threading.Lock(), Fence(1)).erase(known, request.arguments["up_to_lsn"])
                lake.store.answer_request(request.id, {"records": len(gone)})

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def erase(lake: Lake) -> int:
    """Ask for it, as `tidemark erase` does; how many records."""
    head = coverage.head()[0]
    places = erasing.find(Subject("user", str(USER)), log_reader.read_schema_history(), lake.store.decoded_cut(), head)
    lsn = lake.say([SAID.of(Action.ERASE, place) for place in places])
    asked = Erasure(kind="user", reason="a test", asked_by="ada", records=len(places), requests=[], lsn=lsn)
    asked.first_lsn = min(place.lsn for place in places)
    lake.store.begin_erasure(asked)
    return len(places)


def finish(lake: Lake) -> list[dict[str, Any]]:
    types = project_contracts().event_types
    with speed_application(lake):
        done = erasure.finish(lake.store, lake.views, types, lambda: nullcontext(lake.rows), 60)
        return [outcome for _, outcome in done]


def left() -> list[str]:
    return traces.of(settings().home, USER, NAME, apart_from=["tmp"])  # a session that lives has shuffled rows there


def land_her_everywhere(lake: Lake, without: dict[str, Any]) -> None:
    """In facts, duplicates, quarantine, what was corrected, and partials on both sides of a cut."""
    lake.land([*about_her(), page(1, OTHER, 1)])
    lake.land([*about_her(), *of_others()])
    lake.land(refused(), topic="page_viewed")
    assert lake.run("with_her") is not None
    assert served(lake) != without
    pins.create(lake.rows, lake.views, lake.store, "with_her")
    said_of(lake, "page_viewed", 5, Action.SUPERSEDE, json.dumps(page(5, USER, 31)).encode())
    said_of(lake, "page_viewed", 4, Action.RETRACT)
    lake.land(about_her())
    while compaction.compact(threading.Lock(), Fence(1)):
        pass
    lake.land(about_her()[:1])


@pytest.mark.fault
def test_i18_nothing_is_left_of_somebody_and_no_rebuild_brings_them_back(lake: Lake) -> None:
    lake.use(*VIEWS)
    lake.land(of_others())
    lake.land(of_others())
    ensure_serving(lake.rows, lake.views, lake.store)
    assert lake.run("without") is not None
    without = served(lake)
    pins.create(lake.rows, lake.views, lake.store, "before")
    land_her_everywhere(lake, without)
    assert erase(lake) == 4 + 4 + 2 + 4 + 1
    with pytest.raises(erasure.NotYet, match=r"erasure 1 counts from lsn \d+ on, and \w+ shows lsn 5: a batch run"):
        finish(lake)
    old = lake.store.sources(lake.store.current_publication())
    assert lake.run("erased") is not None
    assert served(lake) == without and stands(lake)
    changed = lake.store.runs()[0].summary["changed_days"]
    assert REVISED in set().union(*causes(lake, old, changed).values())
    quarantined = lake.rows(f"SELECT value, reason, count(*) FROM {tables.QUARANTINE} GROUP BY ALL")
    assert quarantined == [(None, "erased", 15)]
    assert left(), "the bytes are still there"
    [outcome] = finish(lake)
    assert outcome["pins"] == ["with_her"] and outcome["erased"] == 15
    assert (found := left()) == [], "\n".join(found)
    assert served(lake) == without and lake.served("page_views_per_user_hour", "pin_before") == without[VIEWS[0]]
    with pytest.raises(pins.LedgerError, match="erasure 1 has ended the pin with_her"):
        pins.by_files(lake.store, lake.views, "with_her")
    assert lake.run("again", ["2026-01-05"], "full") is not None
    assert served(lake) == without and left() == [], "a rebuild from raw bytes brings nothing back"
    lake.land([page(20, USER, 40)])
    assert len(lake.served("page_views_per_user_hour")) == len(without[VIEWS[0]]) + 1, "whoever comes back counts"


def test_i18_a_process_that_died_while_it_erased_is_asked_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The revisions go last: what a first try has left, the next one finds."""
    lake.use("page_views_per_user_hour")
    lake.land([page(1, OTHER, 1), *about_her()])
    ensure_serving(lake.rows, lake.views, lake.store)
    erase(lake)
    assert lake.run("erased") is not None
    known = log_reader.read_schema_history().revisions
    eraser = Eraser(threading.Lock(), Fence(1))
    with monkeypatch.context() as patch:
        patch.setattr(eraser, "_revisions", None)
        with pytest.raises(TypeError):
            eraser.erase(known, 10)
    assert len(eraser.erase(known, 10)) == 4
    assert log_reader.read_schema_history().revisions.entries == ()
    log = DeltaTable(tables.path(tables.MASTER_LOG)).to_pyarrow_dataset()
    assert log.count_rows(filter=pc.field("kind") == "record") == 5, "each record keeps its place"
    assert log.count_rows(filter=pc.field("kind") == "revision") == 1, "the log tells what was erased"
    with pytest.raises(revising.NothingToRevise, match="no page_viewed up to lsn 2 has the event id"):
        event_id = about_her()[0]["event_id"]
        revising.find("page_viewed", event_id, log_reader.read_schema_history(), lake.store.decoded_cut(), 2)
