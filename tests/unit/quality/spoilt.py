"""A platform that keeps every law, to be spoiled one thing at a time; its fixtures are in tests/unit/conftest.py."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.ledger import store as ledger
from spark_jobs.quality.verification import completeness, verify
from spark_jobs.quality.verification.findings import Finding, State
from spark_jobs.quality.verification.scene import Scene
from spark_jobs.sample import producer_ledger
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from tests.local_platform import START, Platform, event, market

VIEWS = [
    "orders_by_day", "orders_by_hour", "sessions", "trades", "word_count", "delay_by_carrier_day", "airline_names",
    "average_price_sliding", "items_sold_last_hour", "top_sellers", "late_and_rejected",
]  # fmt: skip
REPEATED = "00000000-0000-4000-8000-000000000001"
Row = dict[str, Any]
Edit = Callable[[list[Row]], list[Row]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Platform]]:
    """Three micro-batches, two of them built and published; a duplicate and a malformed record; a producers' ledger."""
    patch, home = pytest.MonkeyPatch(), tmp_path_factory.mktemp("template")
    patch.setenv("TIDEMARK_HOME", str(home))
    settings.cache_clear()
    made = Platform(VIEWS)
    made.land([*market(0), event("order_placed", START, REPEATED), ("order_placed", b"{")])
    made.land([*market(1), event("order_placed", START, REPEATED)])
    store = ledger.open()
    store.finish_publication(store.begin_publication("batch", made.build(), cut=2).id)
    made.land([*market(2), event("flight_departed", START), event("airline_changed", START)])
    _write_ledger()
    store.close()
    yield home, made
    patch.undo()
    settings.cache_clear()


@pytest.fixture
def platform(template: tuple[Path, Platform], platform_home: Path) -> Platform:
    """A copy of the template, to be spoiled."""
    home, made = template
    shutil.copytree(home, platform_home, dirs_exist_ok=True)
    return made.fork()


def _write_ledger() -> None:
    from spark_jobs.storage import duckdb_reader

    log = duckdb_reader.dataset(tables.MASTER_LOG).to_table()
    sent = log.filter(pa.compute.equal(log["kind"], "record")).select(producer_ledger.PRODUCER_LEDGER.names[:7])
    without = pa.array([[]] * sent.num_rows, row_types.HEADERS)
    sent = sent.set_column(sent.schema.get_field_index("headers"), "headers", without)
    folder = settings().producer_ledger / "run"
    folder.mkdir(parents=True)
    sent = sent.append_column("outcome", pa.nulls(len(sent), pa.string()))
    pq.write_table(sent.append_column("reason", pa.nulls(len(sent), pa.string())), folder / "0001.parquet")


def findings(platform: Platform, law: str = "", seed: int | None = None) -> list[Finding]:
    """What verify finds of the laws with these words, but those of Kafka and of served answers; seed: of a sample."""
    scene = Scene(ledger.open(), platform.views, seed)
    every = (*verify.checks(scene), *verify.of_builds(scene))
    return [one.looked(check) for one, check in every if one != completeness.OFFSETS and law in one.text]


def broken(platform: Platform, law: str) -> tuple[str, ...]:
    """What is said of a law that is broken."""
    [found] = findings(platform, law)
    assert found.state is State.BREACH, found
    return found.first


def of_record(offset: int, topic: str = "order_placed") -> Callable[[Row], bool]:
    return lambda row: row.get("topic") == topic and row.get("offset") == offset


def lose(which: Callable[[Row], bool]) -> Edit:
    return lambda rows: [row for row in rows if not which(row)]


def double(which: Callable[[Row], bool]) -> Edit:
    return lambda rows: [*rows, *(row for row in rows if which(row))]


def alter(which: Callable[[Row], bool], **fields: Any) -> Edit:
    return lambda rows: [{**row, **fields} if which(row) else row for row in rows]
