"""Read and write transactions on the ledger. Rows stay readable after their transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import lock


class Sessions:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that holds the write lock from its begin; commits at the end, rolls back on an exception."""
        engine = self.engine.execution_options(immediate=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            lock(session.connection())
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    def close(self) -> None:
        self.engine.dispose()
