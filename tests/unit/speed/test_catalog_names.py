"""Names for readers: one view that cannot be served is an alarm of its own, and the others are served."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from infra.embedded import lifecycle
from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.publication.publish import Named
from spark_jobs.speed import catalog_names
from spark_jobs.speed.catalog_names import NamesForReaders
from spark_jobs.speed.status import UNNAMED, Status, health

SAID = "[AMBIGUOUS_REFERENCE] Reference `opened_at` is ambiguous"


class Looks:
    """What becomes of each look at the names, one by one: what it finds, or how it fails."""

    def __init__(self, *outcomes: Named | Exception) -> None:
        self._outcomes, self._begun, self._go_on = iter(outcomes), threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, *_: object) -> Named:
        self._begun.release()
        assert self._go_on.acquire(timeout=30)
        outcome = next(self._outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def finish_one(self) -> None:
        """Let the look that has begun end, and the next one begin."""
        self._go_on.release()
        self.await_one()

    def await_one(self) -> None:
        assert self._begun.acquire(timeout=30)

    def close(self, names: NamesForReaders) -> None:
        names._ended.set()
        self._go_on.release()
        names.close()


@pytest.fixture
def begin(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Looks], tuple[NamesForReaders, Status]]:
    """Start the thread, with these looks; it does not wait between them."""

    @contextmanager
    def connect() -> Iterator[Any]:
        yield None

    def begun(looks: Looks) -> tuple[NamesForReaders, Status]:
        monkeypatch.setattr(catalog_names, "ensure_serving", looks)
        store = ledger.open()
        status = Status(store)
        names = NamesForReaders(store, status)
        looks.await_one()
        return names, status

    monkeypatch.setattr(catalog_names, "connect", connect)
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(catalog_names, "SOON_SECONDS", 0.0)
    return begun


def alarms(status: Status) -> dict[str, str]:
    status.set(state="running")
    found: dict[str, str] = health(ledger.open())["alarms"]
    return found


def test_b9_a_connection_that_is_lost_in_mid_statement_is_an_alarm_until_the_names_are_given(
    begin: Callable[[Looks], tuple[NamesForReaders, Status]],
) -> None:
    looks = Looks(OSError("the socket is closed"), Named(), Named())
    names, status = begin(looks)
    looks.finish_one()
    assert alarms(status) == {UNNAMED: "the socket is closed"}
    looks.finish_one()
    assert alarms(status) == {}
    looks.close(names)


def test_b14_the_alarm_names_the_view_and_its_error_and_ends_with_it(
    begin: Callable[[Looks], tuple[NamesForReaders, Status]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tidemark restart` says it too, and does not wait for the view."""
    monkeypatch.setattr(lifecycle, "restart", lambda *_: None)
    looks = Looks(Named(refused={"word_count": SAID}), Named(), Named())
    names, status = begin(looks)
    looks.finish_one()
    assert alarms(status) == {"view not served: word_count": SAID}
    said = CliRunner().invoke(main, ["restart", "speed"])
    assert (said.exit_code, said.stderr) == (0, f"view not served: word_count: {SAID}\n")
    looks.finish_one()
    assert alarms(status) == {}
    looks.close(names)
