"""A small platform that has published, and its read server in this process, by the settings of now.

The server's workers are processes of their own.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from infra.embedded.passwords import passwords
from infra.embedded.shadow import free_ports
from spark_jobs.engine.chained_view import stored_of
from spark_jobs.ledger.store import Store
from spark_jobs.query_server import users
from spark_jobs.query_server.server import configured
from spark_jobs.settings import settings
from tests.local_platform import START, Platform, event, market
from tests.platform import await_true

VIEWS = (
    "orders_by_day", "orders_by_hour", "orders_by_colour", "sessions", "trades", "word_count", "bus_latest",
    "delay_by_carrier_day", "airline_names", "average_price_sliding", "items_sold_last_hour", "top_sellers",
)  # fmt: skip


@pytest.fixture
def on_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_a_port(monkeypatch)


def put_on_a_port(patch: pytest.MonkeyPatch) -> None:
    """Settings for a server that has time: machines under load start workers slowly."""
    for name, port in zip(("QUERY_PORT", "QUERY_FLIGHT_PORT"), free_ports(2), strict=True):
        patch.setenv(f"TIDEMARK_{name}", str(port))
    patch.setattr("spark_jobs.query_server.pool.WAIT_SECONDS", 300)


@contextmanager
def served() -> Iterator[str]:
    """The server's URL; it has two more users."""
    settings.cache_clear()
    passwords(settings())
    for role in ("analyst", "service"):
        users.add(settings().query_users, f"an-{role}", role, "secret")
    server = uvicorn.Server(configured(settings()))
    thread = threading.Thread(target=server.run)
    thread.start()
    await_true(lambda: server.started, 180, "the server does not start")
    yield settings().query_url
    server.should_exit = True
    thread.join()


def published(store: Store) -> Platform:
    """Two micro-batches built and published as publication 0, a third one past the cut."""
    made = Platform(VIEWS)
    made.land([*market(0), *market(1), event("flight_departed", START), event("airline_changed", START)])
    made.land(market(2))
    store.finish_publication(store.begin_publication("batch", made.build(), cut=2).id)
    for view in (*made.views, *made.views.chained):
        store.record_serving_sql(view.name, f"as Spark was told: '{stored_of(view).column}'")
    made.land(market(3))
    return made
