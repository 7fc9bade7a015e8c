"""Open the ledger's database: SQLite in WAL mode under `home`, or any SQLAlchemy URL.

settings -> engine -> `Sessions`, its transactions. One that writes takes SQLite's write lock at its begin (BEGIN
IMMEDIATE): it waits for another writer instead of failing half way.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from spark_jobs.ledger.schema import SCHEMA_VERSION, Base, Meta
from spark_jobs.settings import settings

BUSY_SECONDS = 30
WRITE_LOCK = 0x7469646D  # any number that nobody else locks

T = TypeVar("T")


class LedgerError(Exception):
    """The ledger cannot be used, or refuses what was asked; the text says what to do."""


def url() -> URL:
    """The ledger's URL, with the password from `ledger_password_file` where that is set."""
    given, secret = settings().ledger_url, settings().ledger_password_file
    if given is None:
        return URL.create("sqlite+pysqlite", database=str(settings().home / "ledger.db"))
    parsed = make_url(given)
    return parsed if secret is None else parsed.set(password=secret.read_text(encoding="utf-8").strip())


def connect(at: URL | None = None) -> Engine:
    """Open the ledger: its tables are created, and its schema version is checked."""
    at = at or url()
    engine = _sqlite(at) if at.get_backend_name() == "sqlite" else create_engine(at, pool_pre_ping=True)
    if _lacking(engine):
        _create(engine)
    with engine.connect() as connection:
        version = connection.scalar(select(Meta.value).where(Meta.name == "schema_version"))
    if version != str(SCHEMA_VERSION):
        raise LedgerError(f"the ledger at {at!r} has schema version {version}; this program needs {SCHEMA_VERSION}")
    return engine


def _lock(connection: Connection) -> None:
    """Let one writer in at a time, so that "no other run is active" stays true until the row is written.

    SQLite has it by BEGIN IMMEDIATE; PostgreSQL by an advisory lock that ends with the transaction.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITE_LOCK})


def _lacking(engine: Engine) -> set[str]:
    """Tables that are not there, and indexes: an older version of the program made its tables without."""
    known = inspect(engine)
    indexes = {index["name"] for of_table in known.get_multi_indexes().values() for index in of_table}
    names = {str(index.name) for table in Base.metadata.tables.values() for index in table.indexes}
    return (Base.metadata.tables.keys() - known.get_table_names()) | (names - indexes)


def _create(engine: Engine) -> None:
    """Create what is lacking; two processes may do so at once, and both succeed."""
    try:
        with engine.execution_options(immediate=True).begin() as connection:
            _lock(connection)
            Base.metadata.create_all(connection)
            for index in (index for table in Base.metadata.tables.values() for index in table.indexes):
                index.create(connection, checkfirst=True)
            if connection.scalar(select(Meta.value).where(Meta.name == "schema_version")) is None:
                connection.execute(insert(Meta).values(name="schema_version", value=str(SCHEMA_VERSION)))
    except IntegrityError:
        return  # the other process was first


def _sqlite(at: URL) -> Engine:
    if at.database and at.database != ":memory:":
        file = Path(at.database)
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # private from its first moment
        file.chmod(0o600)
    engine = create_engine(at, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, record: object) -> None:
    connection.isolation_level = None  # this module begins transactions, not the driver
    cursor = connection.cursor()
    for pragma in ("synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    _to_wal(cursor)
    cursor.close()


def _to_wal(cursor: Any) -> None:
    """Set the journal's mode. SQLite waits for other locks, but not for this one while others open the new file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


class Sessions:
    """Transactions on the ledger. Rows stay readable after theirs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that holds the write lock from its begin; commits at the end, rolls back on an exception."""
        engine = self.engine.execution_options(immediate=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            _lock(session.connection())
            yield session

    def compact(self) -> None:
        """Leave nothing of removed rows in the ledger's file; PostgreSQL does so by itself."""
        if self.engine.dialect.name != "sqlite":
            return
        with closing(self.engine.raw_connection()) as connection:
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.cursor().execute(statement)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    def all(self, query: Select[T]) -> list[T]:
        """What the query selects, in a transaction of its own."""
        with self.read() as session:
            return list(session.scalars(query))

    def first(self, query: Select[T]) -> T | None:
        with self.read() as session:
            return session.scalars(query.limit(1)).first()

    def get(self, table: type[T], key: Any) -> T | None:
        """The row with this primary key."""
        with self.read() as session:
            return session.get(table, key)

    def close(self) -> None:
        self.engine.dispose()
