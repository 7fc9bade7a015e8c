"""A small platform that has published, with events past the cut, and what answers for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.query_server.answers import Answers
from spark_jobs.settings import settings
from tests.local_platform import START, Platform, event, market

VIEWS = (
    "orders_by_day", "orders_by_hour", "orders_by_colour", "sessions", "trades", "word_count", "bus_latest",
    "delay_by_carrier_day", "airline_names", "average_price_sliding", "items_sold_last_hour", "top_sellers",
)  # fmt: skip


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def town(store: Store) -> Platform:
    """Two micro-batches built and published as publication 0, a third one past the cut."""
    made = Platform(VIEWS)
    made.land([*market(0), *market(1), event("flight_departed", START), event("airline_changed", START)])
    made.land(market(2))
    store.finish_publication(store.begin_publication("batch", made.build(), cut=2).id)
    for view in (*made.views, *made.views.chained):
        store.record_serving_sql(view.name, "as Spark was told")
    made.land(market(3))
    return made


@pytest.fixture
def answers(town: Platform, store: Store) -> Answers:
    return Answers(town.views, store, settings())
