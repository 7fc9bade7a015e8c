"""A ledger of its own for each test, with nothing computed yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from tests.publishing import computed


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    computed({})
    opened = ledger.open()
    yield opened
    opened.close()
