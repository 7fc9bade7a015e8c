"""Names for readers: one view that cannot be served is an alarm of its own, and the others are served."""

import threading
from collections.abc import Iterator
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
from spark_jobs.speed.status import Status, health

SAID = "[AMBIGUOUS_REFERENCE] Reference `opened_at` is ambiguous"


def test_b14_the_alarm_names_the_view_and_its_error_and_ends_with_it(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tidemark restart` says it too, and does not wait for the view."""
    looks = iter([Named(refused={"word_count": SAID}), Named()])
    asked, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def ensure_serving(*_: object) -> Named:
        asked.release()
        assert go_on.acquire(timeout=30)
        return next(looks)

    @contextmanager
    def connect() -> Iterator[Any]:
        yield None

    monkeypatch.setattr(catalog_names, "connect", connect)
    monkeypatch.setattr(catalog_names, "ensure_serving", ensure_serving)
    monkeypatch.setattr(catalog_names, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(lifecycle, "restart", lambda *_: None)
    store = ledger.open()
    names = NamesForReaders(store, status := Status(store))
    assert asked.acquire(timeout=30)
    go_on.release()  # the first look ends, the second begins
    assert asked.acquire(timeout=30)
    status.set(state="running")
    assert health()["alarms"] == {"view not served: word_count": SAID}
    said = CliRunner().invoke(main, ["restart", "speed"])
    assert (said.exit_code, said.stderr) == (0, f"view not served: word_count: {SAID}\n")
    names._ended.set()
    go_on.release()
    names.close()
    status.beat()
    assert health()["alarms"] == {}
    store.close()
