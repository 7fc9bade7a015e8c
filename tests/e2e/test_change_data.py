"""From a PostgreSQL table to Kafka by Debezium, as its envelope promises, and to the table that Tidemark serves.

The tests build on one another in order; the broker is the shared platform's, the database and the worker are their own.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import psutil
import pytest
from kafka import KafkaConsumer

from tests.change_data import ChangeData, change_data
from tests.kafka_topics import all_of
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault, pytest.mark.timeout(600)]

TOPIC = "order_row_changed"
SNAPSHOT = (
    "INSERT INTO orders VALUES ('s1', 1, 7, 'placed', 100), ('s2', 2, 7, 'paid', 200), ('s3', 3, 8, 'placed', 300)"
)


class Change(NamedTuple):
    """What identifies a change, and orders those of a key; `rank`: what follows a snapshot may have its lsn."""

    lsn: int
    rank: int
    op: str
    key: str


class Log:
    """All records of the topic, each time that it is read."""

    def __init__(self, servers: str) -> None:
        self.consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)

    def read(self) -> list[tuple[str, dict[str, Any] | None]]:
        """(order_id, envelope or None for a tombstone), in the order of each partition."""
        records = all_of(self.consumer, TOPIC)
        return [(json.loads(one.key)["order_id"], one.value and json.loads(one.value)) for one in records]

    def changes(self) -> dict[Change, dict[str, Any]]:
        """Each change once, repeats left out, in order; a repeat that differs is a failure."""
        once: dict[Change, dict[str, Any]] = {}
        for key, value in self.read():
            if value is not None:
                change = Change(value["source"]["lsn"], int(value["op"] != "r"), value["op"], key)
                promised = {name: value[name] for name in ("before", "after", "source", "op")}
                assert once.setdefault(change, promised) == promised
        return dict(sorted(once.items()))

    def of(self, *keys: str) -> list[dict[str, Any]]:
        """The changes of some keys, in order."""
        return [value for change, value in self.changes().items() if change.key in keys]

    def await_ops(self, ops: str, *keys: str) -> list[dict[str, Any]]:
        """Wait until the changes of these keys are `ops`, a letter each; those changes."""
        await_true(lambda: len(self.of(*keys)) >= len(ops), 30, f"less than {ops} comes of {keys}")
        changes = self.of(*keys)
        assert "".join(change["op"] for change in changes) == ops
        return changes


@pytest.fixture(scope="module")
def table(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChangeData]:
    with change_data(platform.settings.kafka, tmp_path_factory.mktemp("connect"), before=[SNAPSHOT]) as running:
        yield running


@pytest.fixture(scope="module")
def log(platform: Platform) -> Iterator[Log]:
    read = Log(platform.settings.kafka)
    yield read
    read.consumer.close()


def test_the_rows_that_were_there_come_as_a_snapshot(table: ChangeData, log: Log) -> None:
    changes = log.await_ops("rrr", "s1", "s2", "s3")
    assert [change["before"] for change in changes] == [None] * 3
    assert {change["after"]["order_id"]: change["after"]["amount_cents"] for change in changes} == {
        "s1": 100,
        "s2": 200,
        "s3": 300,
    }
    assert sorted(change["source"]["snapshot"] for change in changes) == ["first", "last", "true"]
    assert len({change["source"]["lsn"] for change in changes}) == 1


def test_insert_update_and_delete_say_the_row_before_and_after(table: ChangeData, log: Log) -> None:
    table.execute("INSERT INTO orders VALUES ('a', 4, 7, 'placed', 400, '2026-01-02 03:04:05.678+01')")
    table.execute("UPDATE orders SET status = 'paid' WHERE order_id = 'a'")
    table.execute("DELETE FROM orders WHERE order_id = 'a'")
    placed = {"order_id": "a", "user_id": 4, "store_id": 7, "status": "placed", "amount_cents": 400}
    placed |= {"updated_at": "2026-01-02T02:04:05.678000Z"}
    changes = log.await_ops("cud", "a")
    paid = {**placed, "status": "paid"}
    assert [(c["before"], c["after"]) for c in changes] == [(None, placed), (placed, paid), (paid, None)]
    assert {change["source"]["snapshot"] for change in changes} == {"false"}
    assert len({change["source"]["txId"] for change in changes}) == 3
    times = [change["source"]["ts_ms"] for change in changes]
    assert times == sorted(times)
    of_key = [value for key, value in log.read() if key == "a"]
    assert of_key[of_key.index(None) - 1]["op"] == "d"  # type: ignore[index]


def test_a_transaction_is_of_one_moment_and_its_lsns_are_its_order(table: ChangeData, log: Log) -> None:
    table.execute(
        "INSERT INTO orders VALUES ('b', 5, 7, 'placed', 500), ('c', 5, 7, 'placed', 501)",
        "UPDATE orders SET status = 'paid' WHERE order_id = 'b'",
        "UPDATE orders SET status = 'shipped' WHERE order_id = 'b'",
        "DELETE FROM orders WHERE order_id = 'c'",
        "INSERT INTO orders VALUES ('c', 6, 7, 'placed', 502)",
    )
    changes = log.await_ops("ccuudc", "b", "c")
    assert [(c["after"] or {}).get("status") for c in changes[2:4]] == ["paid", "shipped"]
    assert changes[-1]["after"]["amount_cents"] == 502
    assert len({(change["source"]["txId"], change["source"]["ts_ms"]) for change in changes}) == 1


def test_another_primary_key_is_a_delete_and_an_insert_of_one_lsn(table: ChangeData, log: Log) -> None:
    table.execute("UPDATE orders SET order_id = 'd' WHERE order_id = 'c'")
    old, new = log.await_ops("cdcd", "c")[-1], log.await_ops("c", "d")[0]
    assert (old["before"]["order_id"], old["after"]) == ("c", None)
    assert (new["before"], new["after"]["order_id"]) == (None, "d")
    assert old["source"] == new["source"]


def test_a_killed_worker_repeats_what_it_sent_and_loses_nothing(table: ChangeData, log: Log) -> None:
    (last,) = log.await_ops("c", "d")
    await_true(lambda: table.worker.committed_lsn() >= last["source"]["lsn"], 30, "no offset is written")
    table.execute("INSERT INTO orders VALUES ('e', 7, 8, 'placed', 700)")
    log.await_ops("c", "e")
    table.kill_connect()
    table.execute("UPDATE orders SET status = 'cancelled' WHERE order_id = 'e'")
    table.execute("DELETE FROM orders WHERE order_id = 's3'")
    table.restart_connect()
    log.await_ops("cu", "e")
    log.await_ops("rd", "s3")
    assert sum(change.op == "r" for change in log.changes()) == 3


def test_the_last_change_of_each_key_makes_the_table(table: ChangeData, log: Log) -> None:
    last = {change.key: value["after"] for change, value in log.changes().items()}
    living = {key: after for key, after in last.items() if after is not None}
    rows = table.rows()
    assert {k: {**v, "updated_at": datetime.fromisoformat(v["updated_at"])} for k, v in living.items()} == rows
    assert set(rows) == {"s1", "s2", "b", "d", "e"}


def test_the_served_view_is_the_table(platform: Platform, table: ChangeData) -> None:
    """With what the killed worker sent twice."""
    columns = "order_id, user_id, store_id, status, amount_cents, updated_at"
    query = f"SELECT {columns} FROM serving.orders_current WHERE order_id NOT LIKE 'row-%'"

    def served() -> dict[str, dict[str, Any]]:
        rows = [dict(zip(columns.split(", "), row, strict=True)) for row in platform.sql(query)]
        return {row["order_id"]: {**row, "updated_at": datetime.fromisoformat(row["updated_at"])} for row in rows}

    await_true(lambda: served() == table.rows(), 60, "the view does not become the table")
    table.execute("DELETE FROM orders WHERE order_id = 'b'", "UPDATE orders SET amount_cents = 1 WHERE order_id = 's1'")
    await_true(lambda: served() == table.rows(), 60, "the view does not become the table once more")
    assert set(served()) == {"s1", "s2", "d", "e"}


def test_no_password_is_on_a_command_line_or_in_a_log(table: ChangeData) -> None:
    private = table.worker.folder / "connection.properties"
    assert private.stat().st_mode & 0o077 == 0
    password = private.read_text().partition("password=")[2].splitlines()[0]
    shown = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not any(password in text for text in [*shown, table.worker.log.read_text(), str(table.worker.ask("config"))])
