"""Corrections by command: what is asked for lands once, whoever dies; what cannot be done is refused by name."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.contracts.revisions import Action, Place, Revision
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Run
from spark_jobs.serving.revising import Said
from spark_jobs.speed import revise
from spark_jobs.speed.revise import Reviser
from spark_jobs.storage import log_reader, tables
from tests.local_platform import Platform, change, event
from tests.platform import await_true

WRONG = {**event("sentence_posted"), "txt": "early bird"}
del WRONG["text"]
GOOD = event("sentence_posted", text="worm")


@pytest.fixture
def platform(platform_home: Path) -> Platform:
    """A fact, a record that lacks a field, and one that is no JSON, at lsn 1."""
    made = Platform(["word_count"])
    made.land([GOOD, ("sentence_posted", json.dumps(WRONG).encode()), ("sentence_posted", b"{")])
    return made


@pytest.fixture
def tidemark(platform: Platform) -> Callable[..., Any]:
    """Runs a command while the speed application, which is its Reviser alone, answers."""

    def run(*words: str, code: int = 0) -> str:
        with answering(platform):
            done = CliRunner().invoke(main, [*words])
        assert done.exit_code == code, done.output
        return done.output

    return run


@contextmanager
def answering(platform: Platform) -> Iterator[None]:
    store = ledger.open()
    with running(reviser_of(store, lambda said: platform.land(said=said))):
        yield
    store.close()


@contextmanager
def running(reviser: Reviser) -> Iterator[None]:
    """It answers as housekeeping does, which goes on after an error."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(0.05):
            with suppress(ValueError):
                reviser.answer()

    thread = threading.Thread(target=loop)
    thread.start()
    yield
    ended.set()
    thread.join()


def reviser_of(store: ledger.Store, land: Callable[[Sequence[Revision]], int]) -> Reviser:
    return Reviser(store, threading.Lock(), log_reader.read_schema_history, land)


def said() -> list[tuple[int, Action, str]]:
    return [(one.lsn, one.action, one.by) for one in log_reader.read_schema_history().revisions.entries]


def test_a_fact_is_retracted_superseded_and_restored(tidemark: Callable[..., Any], tmp_path: Path) -> None:
    of = ("sentence_posted", GOOD["event_id"], "--reason", "wrong", "--by", "ada")
    assert "lsn 2: readers see it from the next publication on" in tidemark("retract", *of)
    mended = tmp_path / "mended.json"
    mended.write_text(json.dumps({**GOOD, "text": "worms"}) + "\n")
    tidemark("supersede", *of, "--file", str(mended))
    tidemark("restore", *of)
    assert said() == [(2, Action.RETRACT, "ada"), (3, Action.SUPERSEDE, "ada"), (4, Action.RESTORE, "ada")]
    shown = json.loads(tidemark("revisions", "--json", "--limit", "1"))
    assert [(row["action"], row["event_id"], row["reason"]) for row in shown] == [
        ("restore", GOOD["event_id"], "wrong")
    ]


def test_quarantine_is_listed_shown_readmitted_and_discarded(tidemark: Callable[..., Any]) -> None:
    listed = json.loads(tidemark("quarantine", "list", "--json"))
    assert {(row["reason"], row["field"], row["records"], row["state"]) for row in listed} == {
        ("missing_field", "text", 1, "waiting"), ("not_json", None, 1, "waiting"),
    }  # fmt: skip
    [row] = json.loads(tidemark("quarantine", "show", "--because", "missing_field", "--json"))
    assert json.loads(row["value"]) == WRONG and row["offset"] == 1
    rule = ("--rename", "txt=text", "--reason", "a typing error", "--by", "ada")
    assert "1 stay: the rule changes fields" in tidemark("quarantine", "readmit", "--dry-run", *rule)
    assert said() == [], "a dry run says nothing"
    tidemark("quarantine", "readmit", *rule)
    tidemark("quarantine", "discard", "--at", "sentence_posted/0/2", "--reason", "rubbish", "--by", "ada")
    assert said() == [(2, Action.READMIT, "ada"), (3, Action.DISCARD, "ada")]
    states = {row["reason"]: row["state"] for row in json.loads(tidemark("quarantine", "list", "--json"))}
    assert states == {"missing_field": "readmitted", "not_json": "discarded"}
    assert "nothing fits" in tidemark(
        "quarantine", "discard", "--reason", "r", "--to-lsn", "1", "--because", "x", code=1
    )


def test_i18_quarantine_shows_what_is_erased_until_the_next_build_and_says_nothing_more_of_it(
    platform: Platform, tidemark: Callable[..., Any]
) -> None:
    erased = [Place(1, "sentence_posted", 0, offset) for offset in (0, 1)]
    platform.build()
    decoded = ledger.open()
    decoded.begin_run(Run(run_id="r", cut=1))
    decoded.progress("r", "decode")
    platform.land(said=[Said("ada", "forget").of(Action.ERASE, place) for place in erased])
    listed = json.loads(tidemark("quarantine", "list", "--json"))
    assert {row["reason"]: row["state"] for row in listed} == {"missing_field": "erased", "not_json": "waiting"}
    [row] = json.loads(tidemark("quarantine", "show", "--because", "missing_field", "--json"))
    assert (row["offset"], row["state"]) == (1, "erased")
    rule = ("--rename", "txt=text", "--reason", "a typing error", "--by", "bob")
    assert "nothing fits" in tidemark("quarantine", "readmit", "--because", "missing_field", *rule, code=1)
    tidemark("quarantine", "discard", "--reason", "rubbish", "--by", "bob")
    decoded.close()
    assert [one.place.offset for one in log_reader.read_schema_history().revisions.entries if one.by == "bob"] == [2]
    change(tables.QUARANTINE, lambda rows: [row | {"reason": "erased"} if row["offset"] == 1 else row for row in rows])
    listed = json.loads(tidemark("quarantine", "list", "--json"))
    assert {row["reason"]: row["state"] for row in listed} == {"not_json": "discarded"}, "as the next build stores it"


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("retract", "nobody_knows", "1"), 1, "no event type is called nobody_knows"),
        (("retract", "sentence_posted", "1"), 1, "no sentence_posted up to lsn 1 has the event id 1"),
        (("restore", "sentence_posted", GOOD["event_id"]), 1, "nothing was said of sentence_posted"),
        (
            ("supersede", "sentence_posted", GOOD["event_id"], "--file", "/dev/null"),
            1,
            "no schema accepts it: empty_value",
        ),
        (("quarantine", "readmit"), 2, "say how to read them"),
        (("quarantine", "readmit", "--set", "text=early"), 2, "a text needs its quotes"),
        (("quarantine", "readmit", "--rename", "txt"), 2, "write OLD=NEW"),
        (("quarantine", "discard", "--at", "sentence_posted"), 2, "write TOPIC/PARTITION/OFFSET"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    tidemark: Callable[..., Any], words: tuple[str, ...], code: int, why: str
) -> None:
    assert why in tidemark(*words, "--reason", "a test", code=code)
    assert said() == []


def test_a_request_that_nobody_answers_is_told(platform: Platform) -> None:
    of = ("sentence_posted", GOOD["event_id"], "--reason", "wrong", "--wait", "0")
    done = CliRunner().invoke(main, ["retract", *of])
    assert done.exit_code == 0 and "it lands when the speed application looks" in done.output
    with answering(platform):
        await_true(lambda: bool(said()), 30, "nothing is said")
    assert [action for _, action, _ in said()] == [Action.RETRACT]


@pytest.mark.parametrize("dies", ["before it lands", "after it has landed"])
def test_i13_a_speed_application_that_dies_over_a_request_lands_it_once(platform: Platform, dies: str) -> None:
    """The next one finds the request's name in the log."""
    store = ledger.open()
    number = revise.ask(store, [Said("ada", "a test").of(Action.DISCARD, Place(1, "sentence_posted", 0, 2))])

    def land(said: Sequence[Revision]) -> int:
        if dies == "after it has landed":
            platform.land(said=said)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reviser_of(store, land).answer()
    assert store.answered(number) is None
    store.reopen_requests()  # a start
    reviser_of(store, lambda said: platform.land(said=said)).answer()
    assert [(lsn, action) for lsn, action, _ in said()] == [(2, Action.DISCARD)]
    answered = store.answered(number)
    assert answered is not None and answered.answer == {"lsn": 2}
    store.close()


def test_what_cannot_be_landed_is_told_and_holds_up_nobody(platform: Platform) -> None:
    def refuse(_: Sequence[Revision]) -> int:
        raise ValueError("no room")

    store = ledger.open()
    of = ("sentence_posted", GOOD["event_id"], "--reason", "wrong")
    CliRunner().invoke(main, ["retract", *of, "--wait", "0"])
    with pytest.raises(ValueError, match="no room"):
        reviser_of(store, refuse).answer()
    reviser_of(store, lambda said: platform.land(said=said)).answer()
    assert said() == [], "it is not asked again"
    with running(reviser_of(store, refuse)):
        done = CliRunner().invoke(main, ["retract", *of])
    assert done.exit_code == 1 and "it could not be landed: no room" in done.output
    store.close()


def test_a_reason_is_no_markup_and_steers_no_terminal(tidemark: Callable[..., Any]) -> None:
    tidemark("retract", "sentence_posted", GOOD["event_id"], "--reason", "[/b]\x1b[31m", "--by", "ada")
    told = tidemark("revisions")
    assert "[/b]" in told.replace("\n", "") and "\x1b" not in told
