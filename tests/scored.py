"""`payments_scored`, the model over it, and a published run of made-up results: what training reads."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import write_deltalake

from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger.schema import Build, Run
from spark_jobs.ledger.store import Store
from spark_jobs.registry.models import BoundModel, load_models
from spark_jobs.registry.views import Views, project_views
from spark_jobs.storage import duckdb_reader, tables

FEATURES = ("thousands", "is_small", "is_large", "is_abroad", "is_electronics")
MINUTE = 60_000_000
Payment = tuple[str, int, float]
"""key, microseconds, is_abroad; the other features are 0."""


def views() -> Views:
    """The view alone."""
    return Views((project_views()["payments_scored"],))


def bound() -> BoundModel:
    """The project's model."""
    return load_models(views())["payments_fraud"]


def write_results(payments: Iterable[Payment]) -> int:
    """A version of the results table with these payments; returns it."""
    zeros = dict.fromkeys(FEATURES, 0.0)
    rows = [
        {"key": key, "opened_at": at, "closes_at": at, **zeros, "is_abroad": abroad} for key, at, abroad in payments
    ]
    kinds = {
        "key": pa.string(),
        "opened_at": pa.int64(),
        "closes_at": pa.int64(),
        **dict.fromkeys(FEATURES, pa.float64()),
    }
    path = tables.path(batch_tables("payments_scored")[2])
    write_deltalake(path, pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))), mode="overwrite")
    return duckdb_reader.version(batch_tables("payments_scored")[2])


def write_disputes(lsn_of: dict[str, int]) -> None:
    rows = pa.table({"payment_id": list(lsn_of), "lsn": pa.array(lsn_of.values(), pa.int64())})
    write_deltalake(tables.path(tables.facts("payment_disputed")), rows, mode="overwrite")


def published(store: Store, run_id: str, cut: int, results_version: int) -> None:
    """A run that has built the view and was published."""
    now = datetime.now(UTC)
    store.begin_run(Run(run_id=run_id, cut=cut, cut_at=now))
    versions = {"batch_version": 0, "results_version": results_version}
    about = {"mode": "full", "cut": cut, "horizon": None, "row_count": 0, "seconds": 0.0, "finished_at": now}
    store.record_build(Build(run_id=run_id, view_id="payments_scored", **about, **versions))
    store.progress(run_id, "publish")
