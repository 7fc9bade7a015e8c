"""The read server's second language: Arrow Flight SQL, by gRPC.

a client's call -> its message -> a worker's request -> Arrow batches. Nothing is kept between calls: a statement's
handle is the statement, with its parameters, so that there is nothing to bound and nothing that could end.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from pyarrow import flight

from spark_jobs.query_server.flight import listings, messages
from spark_jobs.query_server.flight.asked import Asked, bound
from spark_jobs.query_server.flight.login import ByLogin, Login, Open, saying
from spark_jobs.query_server.logins import Logins
from spark_jobs.query_server.pool import Reply
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.running import Running
from spark_jobs.query_server.users import User
from spark_jobs.settings import Settings

LOOK_SECONDS = 0.2
"""How often it is asked whether the client still waits."""


class Door(flight.FlightServerBase):
    """It listens as soon as it is made."""

    def __init__(self, settings: Settings, running: Running, logins: Logins, loop: asyncio.AbstractEventLoop) -> None:
        self._running, self._loop = running, loop
        certificate = settings.query_certificate_file and settings.query_key_file
        super().__init__(
            f"grpc{'+tls' if certificate else ''}://{settings.host}:{settings.query_flight_port}",
            auth_handler=Open(),
            middleware={"login": ByLogin(logins)},
            **({"tls_certificates": [_certificate(settings)]} if certificate else {}),
        )

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        with saying():
            command = descriptor.command or b""
            name, message = messages.unpacked(command)
            if name == "CommandStatementQuery":  # its columns, and what they are worth, come with its rows
                asked, schema = _asked(context, message.query), None
                command = messages.packed("TicketStatementQuery", statement_handle=asked.handle())
            else:
                schema = self._schema(context, name, message)
            return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(command, [])], -1, -1)

    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        with saying():
            return flight.SchemaResult(self._schema(context, *messages.unpacked(descriptor.command or b"")))

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        with saying():
            name, message = messages.unpacked(ticket.ticket)
            if name == "TicketStatementQuery":
                return self._rows(context, Asked.of(message.statement_handle))
            if name == "CommandPreparedStatementQuery":
                return self._rows(context, Asked.of(message.prepared_statement_handle))
            return flight.RecordBatchStream(self._listing(context, name, message))

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Bind the parameters of a prepared statement: its handle is another one afterwards."""
        with saying():
            name, message = messages.unpacked(descriptor.command or b"")
            if name != "CommandPreparedStatementQuery":
                raise Refusal("refused", f"{name} is refused: this door reads, by a SELECT")
            asked = replace(Asked.of(message.prepared_statement_handle), values=bound(reader))
            said = messages.plain("DoPutPreparedStatementResult", prepared_statement_handle=asked.handle())
            writer.write(pa.py_buffer(said))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[flight.Result]:
        with saying():
            if action.type == "CreatePreparedStatement":
                _, message = messages.unpacked(action.body.to_pybytes())
                yield flight.Result(self._prepared(context, _asked(context, message.query)))
            elif action.type != "ClosePreparedStatement":  # there is nothing to close
                raise Refusal("refused", f"{action.type} is refused: this door reads, by a SELECT")

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [
            ("CreatePreparedStatement", "a statement's columns and how many parameters it has"),
            ("ClosePreparedStatement", "nothing: a prepared statement takes nothing"),
        ]

    def _prepared(self, context: flight.ServerCallContext, asked: Asked) -> bytes:
        said = self._described(context, asked)
        parameters = pa.schema([(f"p{number}", pa.string()) for number in range(1, said["parameters"] + 1)])
        return messages.packed(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=asked.handle(),
            dataset_schema=base64.b64decode(said["columns"]),
            parameter_schema=parameters.serialize().to_pybytes(),
        )

    def _schema(self, context: flight.ServerCallContext, name: str, message: Any) -> pa.Schema:
        if name == "CommandStatementQuery":
            return _read_schema(self._described(context, _asked(context, message.query))["columns"])
        if name == "CommandPreparedStatementQuery":
            return _read_schema(self._described(context, Asked.of(message.prepared_statement_handle))["columns"])
        if name == "CommandGetTables":
            return listings.TABLES_WITH_COLUMNS if message.include_schema else listings.TABLES
        if name in SHAPES:
            return SHAPES[name]
        raise Refusal("refused", f"{name} is not among what this door tells")

    def _listing(self, context: flight.ServerCallContext, name: str, message: Any) -> pa.Table:
        match name:
            case "CommandGetSqlInfo":
                return listings.sql_info(message.info)
            case "CommandGetDbSchemas":
                return listings.db_schemas(self._schemas(context), listings.given(message, "db_schema_filter_pattern"))
            case "CommandGetTables":
                return listings.tables(
                    self._schemas(context),
                    lambda schema: self._tables(context, schema, message.include_schema),
                    message,
                )
            case "CommandGetTableTypes":
                return pa.Table.from_pydict({"table_type": ["VIEW", "TABLE"]}, listings.TABLE_TYPES)
            case "CommandGetPrimaryKeys":
                schema = message.db_schema or "serving"
                return listings.primary_keys(self._tables(context, schema, False), schema, message.table)
        return self._schema(context, name, message).empty_table()  # no catalogs, no foreign keys

    def _rows(self, context: flight.ServerCallContext, asked: Asked) -> flight.RecordBatchStream:
        _, body = self._ask(context, {"ask": "sql", "format": "arrow", **asdict(asked)})
        return flight.RecordBatchStream(pa.ipc.open_stream(body))

    def _described(self, context: flight.ServerCallContext, asked: Asked) -> dict[str, Any]:
        head, _ = self._ask(context, {"ask": "describe", **asdict(asked)})
        return head

    def _schemas(self, context: flight.ServerCallContext) -> list[str]:
        head, _ = self._ask(context, {"ask": "schemas"})
        schemas: list[str] = head["schemas"]
        return schemas

    def _tables(self, context: flight.ServerCallContext, schema: str, with_columns: bool) -> listings.Listed:
        head, _ = self._ask(context, {"ask": "tables", "schema": schema, "with_columns": with_columns})
        listed: listings.Listed = head["tables"]
        return listed

    def _ask(self, context: flight.ServerCallContext, request: Mapping[str, Any]) -> Reply:
        """By the event loop that has the workers. Refusal; a client that goes ends its statement."""
        user: User = context.get_middleware("login").user
        user.refuse_without("select")
        future: Future[Reply] = asyncio.run_coroutine_threadsafe(self._running.ask(user, request), self._loop)
        while True:
            try:
                return future.result(LOOK_SECONDS)
            except TimeoutError:
                if context.is_cancelled():
                    future.cancel()
                    raise flight.FlightCancelledError("the client has gone") from None


SHAPES: Mapping[str, pa.Schema] = {
    "CommandGetCatalogs": listings.CATALOGS,
    "CommandGetDbSchemas": listings.DB_SCHEMAS,
    "CommandGetTableTypes": listings.TABLE_TYPES,
    "CommandGetPrimaryKeys": listings.PRIMARY_KEYS,
    "CommandGetExportedKeys": listings.FOREIGN_KEYS,
    "CommandGetImportedKeys": listings.FOREIGN_KEYS,
    "CommandGetSqlInfo": listings.SQL_INFO,
}


def _asked(context: flight.ServerCallContext, text: str) -> Asked:
    login: Login = context.get_middleware("login")
    return Asked.by(text, login.headers)


def _read_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _certificate(settings: Settings) -> tuple[bytes, bytes]:
    assert settings.query_certificate_file is not None and settings.query_key_file is not None
    return settings.query_certificate_file.read_bytes(), settings.query_key_file.read_bytes()


def opened(settings: Settings, running: Running, logins: Logins) -> Callable[[], None]:
    """The door, in threads of its own beside this event loop; returns how to close it."""
    door = Door(settings, running, logins, asyncio.get_running_loop())
    return lambda: door.shutdown()
