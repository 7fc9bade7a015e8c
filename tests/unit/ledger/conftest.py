"""A ledger of its own for each test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Base
from spark_jobs.ledger.store import Store


@pytest.fixture
def at(tmp_path: Path) -> URL:
    """SQLite; or the database that TIDEMARK_TEST_LEDGER_URL names, emptied: PostgreSQL under the same tests."""
    elsewhere = os.environ.get("TIDEMARK_TEST_LEDGER_URL")
    if elsewhere is None:
        return URL.create("sqlite+pysqlite", database=str(tmp_path / "ledger.db"))
    engine = create_engine(elsewhere)
    Base.metadata.drop_all(engine)
    engine.dispose()
    return make_url(elsewhere)


@pytest.fixture
def store(at: URL) -> Iterator[Store]:
    opened = ledger.open(at)
    yield opened
    opened.close()
