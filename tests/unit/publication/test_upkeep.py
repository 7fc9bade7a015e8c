"""C5: what keeps the platform small: the ledger's mirror for SQL readers, and what died in the middle of something."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import MIRRORED, Run
from spark_jobs.publication import mirror, pins, scratch
from spark_jobs.publication.names import ensure_named
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables
from tests.publishing import VIEWS, Server, built, computed


def test_the_mirror_says_what_the_ledger_says_and_writes_only_what_changed(platform_home: Path) -> None:
    store = ledger.open()
    store.begin_run(Run(run_id="r1", cut=7, days=["2026-03-01"]))
    assert set(mirror.mirror(store)) == {"ops.runs"}
    assert mirror.mirror(store) == {}
    [run] = duckdb_reader.dataset("ops.runs").to_table().to_pylist()
    assert (run["run_id"], run["cut"], run["days"], run["error"]) == ("r1", 7, '["2026-03-01"]', None)
    assert datetime.now(UTC) - run["started_at"] < timedelta(minutes=10)
    store.fail_run("r1", "a reason")
    assert mirror.mirror(store) == {"ops.runs": 1}
    [run] = duckdb_reader.dataset("ops.runs").to_table().to_pylist()
    assert (run["state"], run["error"]) == ("failed", "a reason")


def test_every_table_of_the_mirror_gets_its_name_for_readers(platform_home: Path) -> None:
    mirror.mirror(ledger.open())
    named = ensure_named(Server(), VIEWS)
    assert {table for table in named if table.startswith("ops.")} == {tables.ops(name) for name in MIRRORED}


def test_rows_keep_their_kinds_of_values(platform_home: Path) -> None:
    store = ledger.open()
    store.beat("speed", {"lsn": 3})
    built(store, "r1", cut=1, version=0)
    mirror.mirror(store)
    [audit] = duckdb_reader.dataset("ops.audits").to_table().to_pylist()
    assert audit["passed"] is True and audit["at"].tzinfo is not None
    [beat] = duckdb_reader.dataset("ops.heartbeats").to_table().to_pylist()
    assert beat["payload"] == '{"lsn": 3}'
    assert duckdb_reader.dataset("ops.builds").schema.field("seconds").type == pa.float64()


class Schemas(Server):
    """A server with schemas of pins, too."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def __call__(self, statement: str) -> list[tuple[str, str, bool]]:
        found = super().__call__(statement)
        return [(name, "", False) for name in self.names] if statement.startswith("SHOW SCHEMAS") else found


def test_what_died_a_day_ago_is_removed_and_nothing_else(platform_home: Path) -> None:
    warehouse, old = Path(settings().warehouse), (datetime.now(UTC) - timedelta(days=2)).timestamp()
    in_tmp = settings().tmp_dir / "verify-x"
    for folder in (warehouse / "build.r1", warehouse / "batch.db", warehouse / "verify_2", in_tmp):
        folder.mkdir(parents=True)
        os.utime(folder, (old, old))
    (warehouse / "build.at-work").mkdir()
    assert sorted(scratch.tidy(Schemas(), ledger.open())) == ["build.r1", "verify-x", "verify_2"]
    assert sorted(folder.name for folder in warehouse.iterdir()) == ["batch.db", "build.at-work"]


def test_c5_a_pin_that_the_ledger_does_not_know_is_dropped_and_a_known_one_is_not(platform_home: Path) -> None:
    store, server = ledger.open(), Schemas("pin_known", "pin_verify_1", "pin_Strange`name", "serving")
    computed({1: timedelta(0)})
    store.finish_publication(store.begin_publication("initial", {}, cut=0).id)
    pins.create(server, VIEWS, store, "known")
    assert scratch.tidy(server, store) == ["pin_verify_1"]
    assert [said for said in server.said if "DROP" in said] == ["DROP SCHEMA IF EXISTS pin_verify_1 CASCADE"]
