"""An erasure ends where files have the records that no build and no decode takes them out of."""

import datetime as dt
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Erasure, Run
from spark_jobs.ledger.store import Store
from spark_jobs.publication import erasure, mirror
from spark_jobs.publication.erasure import NotYet
from spark_jobs.publication.retire import retire
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from tests.publishing import VIEWS, Server, built, computed, publish

SUBJECT = "user4711"
WITHOUT = Views(tuple(view for view in VIEWS if view.name != "word_count"))
UNANSWERED = "the speed application has not taken the records out"
"""Where an erasure stops here, once all else is done."""


def write(table: str, *values: str) -> None:
    write_deltalake(tables.path(table), pa.table({"word": [*values]}), mode="overwrite")


def left() -> list[str]:
    """Tables with a file that has the subject."""
    warehouse = Path(settings().warehouse)
    files = (file for file in warehouse.rglob("*") if file.is_file() and SUBJECT.encode() in file.read_bytes())
    return sorted({"/".join(file.relative_to(warehouse).parts[:2]) for file in files})


@pytest.fixture
def server(store: Store) -> Server:
    """Publication 0 shows the subject, 1 was built past the erasure; both show both views."""
    made = Server()
    computed({1: dt.timedelta(seconds=-1)})
    for view in VIEWS:
        write(view.tables[0], SUBJECT)
    built(store, "r1", cut=1, version=0)
    publish(made, VIEWS, store, "r1")
    write("batch.orders_by_day", "others")
    built(store, "r2", cut=5, version=1)
    publish(made, WITHOUT, store, "r2")  # nobody builds word_count any more
    store.begin_erasure(
        Erasure(kind="user", reason="a test", asked_by="ada", records=1, requests=[], first_lsn=1, lsn=3)
    )
    return made


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    with closing(ledger.open()) as opened:
        view_lock.check(opened, VIEWS)
        yield opened


def finish(store: Store, server: Server) -> None:
    list(erasure.finish(store, WITHOUT, project_contracts().event_types, lambda: nullcontext(server), 0))


def test_i18_tables_of_a_view_whose_file_is_gone_are_named_before_anything_is_ended(
    server: Server, store: Store
) -> None:
    with pytest.raises(
        NotYet, match=r"batch\.word_count is of no view that there is: `tidemark view retire word_count`"
    ):
        finish(store, server)
    assert [publication.state for publication in store.publications()] == ["done", "done"]
    retire(server, WITHOUT, store, "word_count")
    with pytest.raises(NotYet, match=UNANSWERED):
        finish(store, server)
    assert left() == []


def test_i18_a_table_that_no_view_ever_had_is_named(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    write("batch.copied", SUBJECT)
    with pytest.raises(NotYet, match=r"batch\.copied is of no view that there ever was: remove its folder .*copied"):
        finish(store, server)


def test_i18_facts_of_an_event_type_without_a_schema_are_named(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    write("facts.forgotten", SUBJECT)
    with pytest.raises(NotYet, match=r"facts\.forgotten is of no event type that there is: put its schema back"):
        finish(store, server)


def test_i18_files_of_a_view_that_no_publication_shows_go_too(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    for words in (SUBJECT, "others"):
        write("batch.word_count", words)
    with pytest.raises(NotYet, match=UNANSWERED):
        list(erasure.finish(store, VIEWS, project_contracts().event_types, lambda: nullcontext(server), 0))
    assert left() == []


def test_i18_no_byte_of_the_ledger_nor_of_its_mirror_has_what_was_said_of_a_row(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    retire(server, WITHOUT, store, "word_count")
    store.begin_run(Run(run_id="r3", cut=6))
    store.progress("r3", "audit", **{AGREEMENT: [{"view": "v", "unexplained": [f"{SUBJECT}: 5 (batch) 6 (speed)"]}]})
    store.fail_run("r3", f"v would be served otherwise than its files say (I20): {SUBJECT}")
    look = store.begin_verification("sample", 1)
    store.record_finding(look.id, "I3", {"rows": [SUBJECT]})
    assert {"ops.runs", "ops.verifications"} <= mirror.mirror(store).keys()
    monkeypatch.setattr(erasure, "_taken_out", lambda *_: 1)
    finish(store, server)
    assert left() == [] and store.open_erasures() == []
    home = settings().home
    assert not [file for file in home.glob("ledger.db*") if SUBJECT.encode() in file.read_bytes()]
