"""A small platform that has published, with events past the cut, and what answers for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.query_server.answers import Answers
from spark_jobs.settings import settings
from tests.local_platform import Platform
from tests.read_server import published


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def town(store: Store) -> Platform:
    return published(store)


@pytest.fixture
def answers(town: Platform, store: Store) -> Answers:
    return Answers(town.views, store, settings())
