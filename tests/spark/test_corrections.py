"""Corrections by hand: a fact is taken back or read otherwise, a record leaves quarantine; both layers agree."""

import json
from collections import Counter
from typing import Any

import pytest

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action, Revision
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.quality.reconciliation.causes import CORRECTED, DUPLICATE, REVISED
from spark_jobs.serving import quarantine, revising
from spark_jobs.serving.explain import explain
from spark_jobs.serving.quarantine import Rule, Which
from spark_jobs.serving.revising import Said
from spark_jobs.storage import coverage, log_reader, tables
from tests.spark.lake import Lake, event
from tests.spark.test_schemas_in_force import causes, page, sentence, stands, words

pytestmark = pytest.mark.spark
VIEWS = ("word_count", "page_views_per_user_hour", "sessions", "vitals_by_person_hour", "late_and_rejected")
SAID = Said("ada", "a test")


def vitals(number: int, rate: int) -> dict[str, Any]:
    return event("vitals_measured", number, occurred_at="2026-01-05T09:10:00.000Z", heart_rate=rate)


def said_of(lake: Lake, event_type: str, number: int, action: Action, value: bytes | None = None) -> int:
    """Something is said of a fact; returns the lsn."""
    history, head = log_reader.read_schema_history(), coverage.head()[0]
    event_id = event(event_type, number)["event_id"]
    fact = revising.find(event_type, event_id, history, lake.store.decoded_cut(), head)
    if value is not None:
        return lake.say([revising.superseding(fact, value, SAID, history, head)])
    return lake.say([fact.revision(SAID, action)])


def rejects(lake: Lake, **which: Any) -> Any:
    history, head = log_reader.read_schema_history(), coverage.head()[0]
    return quarantine.portions(Which(**which), history, lake.store.decoded_cut(), head), history, head


def summary(lake: Lake) -> list[dict[str, Any]]:
    portions, history, head = rejects(lake)
    return quarantine.summary(portions, history, lake.store.decoded_cut(), head)


def served(lake: Lake) -> dict[str, Any]:
    return {
        "words": words(lake),
        "pages": lake.ask("SELECT sum(page_views) FROM page_views_per_user_hour"),
        "sessions": lake.ask("SELECT pages, exit_url FROM sessions"),
        "heart": lake.ask("SELECT max_heart_rate FROM vitals_by_person_hour"),
    }


def test_what_is_said_of_records_counts_in_both_layers_from_the_next_publication_on(lake: Lake) -> None:
    """I13, and I7 after each run: of built records, of newer ones, and of what repeats them; then one is restored."""
    lake.use(*VIEWS)
    lake.land([page(1, 0), page(2, 10), sentence(3, "early bird"), vitals(4, 190), vitals(5, 80)])
    lake.land([misspelt(9, "early"), misspelt(10, "worms"), b"{"], topic="sentence_posted")
    ensure_serving(lake.rows, lake.views, lake.store)
    assert lake.run("r1") is not None
    before = served(lake)
    lake.land([page(1, 0), page(6, 15), sentence(7, "worm"), sentence(8, "bird")])
    lake.land([misspelt(9, "early")], topic="sentence_posted")
    for event_type, number in (("page_viewed", 1), ("vitals_measured", 4), ("sentence_posted", 7)):
        said_of(lake, event_type, number, Action.RETRACT)
    said_of(lake, "page_viewed", 2, Action.SUPERSEDE, json.dumps({**page(2, 12), "url": "/corrected"}).encode())
    readmit_and_discard(lake)
    lake.land([page(1, 0), page(6, 15)])
    assert served(lake)["heart"] == before["heart"], "readers see it from the next publication on"
    old = lake.store.sources(lake.store.current_publication())
    assert lake.run("r2") is not None
    assert served(lake) == {
        "words": {"early": 2, "bird": 2, "worms": 1},
        "pages": [(2,)],
        "sessions": [(2, page(6, 15)["url"])],
        "heart": [(80,)],
    }
    assert stands(lake)
    left = lake.rows(f"SELECT event_type, reason, count(*) FROM {tables.QUARANTINE} GROUP BY ALL")
    assert left == [
        ("page_viewed", "retracted", 3), ("sentence_posted", "retracted", 1), ("vitals_measured", "retracted", 1),
        (None, "not_json", 1),
    ]  # fmt: skip
    behind = explain(lake.store, lake.views, "page_views_per_user_hour", ["user_id=7", "hour=2026-01-05T09:00:00Z"])
    told = [(one["layer"], b"/corrected" in one["value"]) for one in behind.events]
    assert told == [("batch", False), ("revision", True), ("batch", False)], "what was sent, and what is read"
    changed = lake.store.runs()[0].summary["changed_days"]
    assert set().union(*causes(lake, old, changed).values()) <= {CORRECTED, DUPLICATE, REVISED}
    assert set().union(*causes(lake, {}, {}).values()) <= {REVISED, DUPLICATE}, "nothing is unexplained"
    said_of(lake, "vitals_measured", 4, Action.RESTORE)
    assert lake.run("r3") is not None
    assert served(lake)["heart"] == [(190,)] and stands(lake)


def misspelt(number: int, text: str) -> dict[str, Any]:
    """No schema accepts it."""
    wrong = {**sentence(number, text), "txt": text}
    del wrong["text"]
    return wrong


def readmit_and_discard(lake: Lake) -> None:
    """What a rule makes facts, which the batch layer and the speed layer rejected; the rest stays, with its reason."""
    portions, history, head = rejects(lake)
    asked, refused = list[Revision](), Counter[str]()
    for rows in portions:
        some, others = revising.readmissions(rows, Rule(rename={"txt": "text"}), SAID, history, head)
        asked += some
        refused += others
    assert [one.place.lsn for one in asked] == [2, 2, 4] and refused.total() == 1
    lake.say(asked)
    no_json = next(rejects(lake, reasons=["not_json"])[0])
    assert revising.readmissions(no_json, Rule("nobodys"), SAID, history, head) == ([], {"unknown_topic": 1})
    lake.say([SAID.of(Action.DISCARD, place) for place in places_of(no_json)])
    states = {row["state"]: row["records"] for row in summary(lake)}
    assert states == {quarantine.READMITTED: 3, quarantine.DISCARDED: 1}


def test_what_cannot_be_corrected_is_refused_by_name(lake: Lake) -> None:
    lake.use("word_count")
    lake.land([sentence(1, "early")])
    history, head = log_reader.read_schema_history(), coverage.head()[0]
    with pytest.raises(revising.NothingToRevise, match="no sentence_posted up to lsn 1 has the event id x"):
        revising.find("sentence_posted", "x", history, 0, head)
    fact = revising.find("sentence_posted", sentence(1, "")["event_id"], history, 0, head)
    with pytest.raises(revising.NothingToRevise, match="no schema accepts it: not_json"):
        revising.superseding(fact, b"{", SAID, history, head)
    other = project_contracts().of("sentence_posted").examples[0]
    with pytest.raises(revising.NothingToRevise, match="is to supersede sentence_posted 00000000-0000-4000-8000-0000"):
        revising.superseding(fact, json.dumps(other).encode(), SAID, history, head)
