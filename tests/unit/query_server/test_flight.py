"""The read server by Arrow Flight SQL, as a client of that protocol has it: ADBC's driver, over gRPC."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import DatabaseOptions as Login
from adbc_driver_manager import Error
from pyarrow import flight

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.query_server.flight import messages
from spark_jobs.settings import settings
from tests.certificates import DAY, Authority
from tests.local_platform import Platform
from tests.read_server import published, put_on_a_port, served

HEADER = DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
ONE = "SELECT 1 AS one"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Platform, Store]]:
    """A server for all tests that only ask: its URL, what it answers for, and the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_HOME", str(tmp_path_factory.mktemp("home")))
        put_on_a_port(patch)
        settings.cache_clear()
        store = ledger.open()
        answered = published(store)
        with served():
            yield f"grpc://127.0.0.1:{settings().query_flight_port}", answered, store
        store.close()
    settings.cache_clear()


@pytest.fixture
def url(shared: tuple[str, Platform, Store]) -> str:
    return shared[0]


@contextmanager
def client(url: str, user: str = "an-analyst", password: str = "secret", **more: str) -> Iterator[Any]:
    login = {Login.USERNAME.value: user, Login.PASSWORD.value: password}
    with adbc.connect(url, db_kwargs=login | more, autocommit=True) as connection, connection.cursor() as cursor:
        yield cursor


def rows(cursor: Any, statement: str, *values: Any) -> list[dict[str, Any]]:
    cursor.execute(statement, values or None)
    found: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
    return found


def test_a_statement_is_answered(url: str) -> None:
    with client(url) as cursor:
        cursor.execute("SELECT store_id, sum(orders) AS orders FROM orders_by_day GROUP BY store_id")
        table = cursor.fetch_arrow_table()
        assert table.column_names == ["store_id", "orders"] and table.num_rows > 0
        assert table.schema.field("orders").type == pa.int64(), "as Spark has a sum"


def test_names_are_of_the_schema_or_the_moment_that_headers_say(shared: tuple[str, Platform, Store]) -> None:
    url, _, store = shared
    done = store.readable_publication(0).done_at
    assert done is not None
    store.begin_pin("then", 0, 2, done)
    counted, sums = "SELECT sum(orders) AS n FROM orders_by_day", []
    for said in ({}, {f"{HEADER}tidemark-schema": "pin_then"}, {f"{HEADER}tidemark-as-of": "0"}):
        with client(url, **said) as cursor:
            sums.append(rows(cursor, counted)[0]["n"])
            assert rows(cursor, f"{counted} WHERE orders >= ?", 0)[0]["n"] == sums[-1], "of what is prepared, too"
    now, pinned, as_of = sums
    assert now > pinned == as_of


def test_a_prepared_statement_takes_values_of_their_types(url: str) -> None:
    with client(url) as cursor:
        values = (5, Decimal("1.50"), date(2026, 3, 1))
        [row] = rows(cursor, "SELECT ? AS a, ? AS b, ? AS c, '?' AS d", *values)
        assert tuple(row.values()) == (*values, "?")
        first, second = rows(cursor, "SELECT * FROM word_count ORDER BY word LIMIT ?", 2)
        assert first["word"] < second["word"]
        assert rows(cursor, "SELECT * FROM word_count WHERE word = ?", second["word"]) == [second]
        assert rows(cursor, "SELECT * FROM word_count WHERE word = ?", "' OR true --") == []
        with pytest.raises(Error, match=r"2 parameters .* 1 values"):
            rows(cursor, "SELECT ? AS a, ? AS b", 1)


def test_clients_list_schemas_tables_columns_and_what_the_door_is(shared: tuple[str, Platform, Store]) -> None:
    url, answered, _ = shared
    with client(url) as cursor:
        connection = cursor.connection
        [listed] = connection.adbc_get_objects(depth="columns", db_schema_filter="serving").read_all().to_pylist()
        [schema] = listed["catalog_db_schemas"]
        tables = {one["table_name"]: one for one in schema["db_schema_tables"]}
        assert set(tables) == {view.name for view in (*answered.views, *answered.views.chained)}
        columns = [column["column_name"] for column in tables["orders_by_day"]["table_columns"]]
        assert columns == [*answered.views.served["orders_by_day"].answer_kinds]
        assert connection.adbc_get_table_types() == ["VIEW", "TABLE"]
        assert connection.adbc_get_info()["vendor_name"] == "Tidemark"
        found = connection.adbc_get_table_schema("word_count", db_schema_filter="serving")
        assert found.names == ["word", "occurrences"]


def test_keys_and_what_an_answer_is_worth_are_told_by_the_protocol(url: str) -> None:
    own = flight.connect(url)
    options = flight.FlightCallOptions(headers=[own.authenticate_basic_token("an-analyst", "secret")])

    def told(name: str, **values: str) -> pa.Table:
        asked = flight.FlightDescriptor.for_command(messages.packed(name, **values))
        [endpoint] = own.get_flight_info(asked, options).endpoints
        return own.do_get(endpoint.ticket, options).read_all()

    rows = told("CommandStatementQuery", query="SELECT sum(orders) AS n FROM orders_by_day")
    worth = json.loads(rows.schema.metadata[b"tidemark"])
    assert (worth["publication"], worth["cut"], worth["lsn"]) == (0, 2, 3)
    keys = told("CommandGetPrimaryKeys", db_schema="serving", table="orders_by_day")
    assert keys["column_name"].to_pylist() == ["store_id", "day"] and keys["key_sequence"].to_pylist() == [1, 2]


REFUSED = {
    "DELETE FROM word_count": "DELETE is refused: this door reads",
    "SELECT 1; SELECT 2": "one at a time",
    "SELECT * FROM master.log": "the schema master is not behind this door",
    "SELECT * FROM word_count WHERE word = :name": "the parameter :name is refused",
    "SELECT wrong FROM word_count": "wrong",
    "SELECT * FROM nothing": "serving has no view nothing",
}


def test_what_this_door_does_not_take_is_refused_by_name(url: str) -> None:
    for statement, why in REFUSED.items():
        with client(url) as cursor, pytest.raises(Error, match=why) as refused:
            rows(cursor, statement)
        assert "Traceback" not in str(refused.value)


def test_what_would_change_something_or_is_made_up_is_refused(url: str) -> None:
    with client(url) as cursor, pytest.raises(Error, match="not among what this door takes"):
        cursor.adbc_ingest("word_count", pa.table({"word": ["x"]}))
    own = flight.connect(url)
    options = flight.FlightCallOptions(headers=[own.authenticate_basic_token("an-analyst", "secret")])
    for wrong in (b"", b"nonsense", messages.packed("TicketStatementQuery", statement_handle=b"[1]")):
        with pytest.raises(flight.FlightServerError):
            own.do_get(flight.Ticket(wrong), options)
    with client(url) as cursor, pytest.raises(Error, match="more than 1,048,576 bytes"):
        rows(cursor, "SELECT ? AS a", "x" * (1 << 20))
    with pytest.raises(flight.FlightServerError, match="this door reads"):
        [*own.do_action(flight.Action("BeginTransaction", b""), options)]


def test_c1_nobody_else_is_answered(url: str) -> None:
    for user, password in (("an-analyst", "wrong"), ("nobody", "secret")):
        with pytest.raises(Error, match="login is wrong"), client(url, user, password) as cursor:
            rows(cursor, ONE)
    stranger = flight.connect(url)
    calls: list[Callable[[], Any]] = [
        lambda: stranger.get_flight_info(flight.FlightDescriptor.for_command(b"")),
        lambda: stranger.do_get(flight.Ticket(b"")),
        lambda: stranger.do_put(flight.FlightDescriptor.for_command(b""), pa.schema([]))[1].read(),
        lambda: [*stranger.do_action(flight.Action("CreatePreparedStatement", b""))],
        lambda: [*stranger.list_actions()],
        lambda: [*stranger.list_flights()],
    ]
    for call in calls:
        with pytest.raises(flight.FlightUnauthenticatedError):
            call()


def test_c1_with_a_certificate_it_speaks_tls_alone(
    town: Platform, on_a_port: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    certificate, key, _ = authority.issue("query", DAY)
    monkeypatch.setenv("TIDEMARK_QUERY_CERTIFICATE_FILE", str(certificate))
    monkeypatch.setenv("TIDEMARK_QUERY_KEY_FILE", str(key))
    with served():
        at, trusts = f"127.0.0.1:{settings().query_flight_port}", DatabaseOptions.TLS_ROOT_CERTS.value
        with client(f"grpc+tls://{at}", **{trusts: authority.ca.read_text()}) as cursor:
            assert rows(cursor, ONE) == [{"one": 1}]
        for url in (f"grpc+tls://{at}", f"grpc://{at}"):
            with pytest.raises(Error), client(url) as cursor:
                rows(cursor, ONE)
