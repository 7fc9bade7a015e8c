"""The pin of a verification: which door gives its rows, and that nothing of it stays."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from spark_jobs.ledger import store as ledger
from spark_jobs.publication.pins import DONE
from spark_jobs.quality.verification import answers, pinned, scope
from spark_jobs.quality.verification.findings import Finding, State
from tests.local_platform import Platform
from tests.publishing import Server
from tests.read_server import served


def test_a_sample_is_read_by_the_read_server_and_a_few_views_by_spark(
    platform: Platform, on_a_port: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, told = ledger.open(), defaultdict[str, list[Finding]](list)
    monkeypatch.setattr(answers, "BY_SPARK", 1)
    with served(), answers.opened(store, platform.views, lambda: scope.everything(platform.lsn), seed=1) as checks:
        for law, check in checks:
            found = law.looked(check)
            told[found.state].append(found)
        [pin] = store.pins()
        assert pin.state != DONE, "nobody misses the names that it has not got"
    [by_spark] = told[State.UNABLE]
    assert "the Thrift server" in by_spark.note
    read = [*told[State.HOLDS], *told[State.ABSENT]]
    assert all(found.note.endswith("; read by the read server") for found in read)
    assert len(read) == len(checks) - 1 and len(told[State.HOLDS]) > 5, told
    assert store.pins() == []


def test_what_the_read_server_gives_no_answer_to_is_read_by_spark(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, store = Server(), ledger.open()
    monkeypatch.setattr(pinned, "connect", lambda: nullcontext(server))
    monkeypatch.setattr(pinned, "ask", lambda connection, statement: SimpleNamespace(rows=connection(statement)))
    with answers.opened(store, platform.views, lambda: scope.everything(platform.lsn), seed=1) as checks:
        law, check = checks[0]
        law.looked(check)
        assert any(said.startswith("INSERT OVERWRITE") for said in server.said)
        assert len([said for said in server.said if said.startswith("CREATE VIEW")]) == 1


def test_c5_a_pin_that_is_half_made_goes_when_verify_ends(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    server, store = Server(), ledger.open()
    server.fatal = "CREATE VIEW"
    monkeypatch.setattr(pinned, "connect", lambda: nullcontext(server))
    monkeypatch.setattr(pinned, "ask", lambda connection, statement: SimpleNamespace(rows=connection(statement)))
    whole = scope.everything(platform.lsn)
    with answers.opened(store, platform.views, lambda: whole) as checks:
        assert [law.looked(check).state for law, check in checks[:1]] == [State.UNABLE]
        [half] = store.pins()
    assert store.pins() == []
    assert server.said[-1] == f"DROP SCHEMA IF EXISTS pin_{half.name} CASCADE"


def test_a_connection_that_was_left_in_the_middle_of_an_answer_hides_no_finding(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, store, is_left = Server(), ledger.open(), iter((True, False))
    server.fatal = "INSERT"

    @contextmanager
    def connect() -> Iterator[Server]:
        left = next(is_left)
        yield server
        if left:
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "the rest of an answer")

    monkeypatch.setattr(pinned, "connect", connect)
    monkeypatch.setattr(pinned, "ask", lambda connection, statement: SimpleNamespace(rows=connection(statement)))
    with answers.opened(store, platform.views, lambda: scope.everything(platform.lsn)) as checks:
        assert {law.looked(check).state for law, check in checks[:1]} == {State.UNABLE}
    assert store.pins() == []


def test_a_folder_that_the_server_still_writes_to_is_removed_once_it_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "verify_1"
    folder.mkdir()
    (folder / "part").write_text("x")

    class Busy(fs.LocalFileSystem):
        tries = 0

        def delete_dir(self, path: str) -> None:
            self.tries += 1
            if self.tries == 1:
                raise OSError(39, "Directory not empty")
            super().delete_dir(path)

    busy = Busy()
    pinned._remove(busy, str(folder))
    assert busy.tries == 2 and not folder.exists()
    pinned._remove(busy, str(folder))
