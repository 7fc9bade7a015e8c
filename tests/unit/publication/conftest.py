"""A ledger of its own for each test, with nothing computed yet; and a view in two versions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from tests.publishing import VIEWS, computed


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    computed({})
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def both() -> Views:
    """orders_by_day in two versions."""
    orders, words = VIEWS
    assert isinstance(orders, AggregateView)
    return Views((orders, replace(orders, version=2), words))
