"""What a drill has sent, written down by itself, and the answers that it gives: an oracle for `tidemark verify`.

events, where Kafka says that they are -> `<home>/sent.parquet` -> decode -> views. Nothing of the shadow platform's
log, its duplicates or its quarantine takes part; only alerts, which it sends itself, are taken from the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.row_types import Partition
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.drill.disturbances import Role, Sending
from spark_jobs.drill.slice_of_log import alert_topics
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import Served, stored_of
from spark_jobs.ledger.source import with_unbuilt
from spark_jobs.messaging.producer import Sent
from spark_jobs.quality import recompute
from spark_jobs.quality.recompute import Recomputed
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.render import ready, servable
from spark_jobs.settings import settings

ORACLE = f"{__name__}:oracle"
FILE = "sent.parquet"
LSN = 1
"""Of all records: which micro-batch took them decides no answer that is compared here."""


def write(sent: Iterable[tuple[Sending, Sent]], home: Path) -> None:
    """Write down the events; what repeats one or is malformed should change nothing."""
    rows = [
        {"lsn": LSN, "topic": at.topic, "partition": at.partition, "offset": at.offset, "timestamp": at.timestamp}
        | {"key": sending.record.key, "value": sending.record.value}
        for sending, at in sent
        if sending.role is Role.EVENT
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=row_types.RECORD), home / FILE)


@dataclass(frozen=True)
class AsSent:
    """An `expected.Oracle` over records, of which each is another event."""

    records: pa.Table
    now: datetime
    views: Views
    approximate: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def expected(self, view: str) -> pa.Table:
        """Raises KeyError for a view whose answer is not decided by the events alone."""
        parts = Recomputed(self._facts, [self.views[view_id] for view_id in self._in_force], self.now)
        return self._facts.sql(serving_plan.answer(self._asked[view], parts)).to_arrow_table()

    @cached_property
    def _in_force(self) -> list[str]:
        """As on a platform on which nothing was promoted."""
        return [*ready(self.views, with_unbuilt(self.views.by_id, {}), {})]

    @cached_property
    def _asked(self) -> dict[str, Served]:
        every = {view.name: view for view in servable(self.views, with_unbuilt(self._in_force, {}))}
        decided = {name for name, view in every.items() if _is_decided(view)}
        return {name: view for name, view in every.items() if {name, *stored_of(view).looked_up} <= decided}

    @cached_property
    def _facts(self) -> duckdb.DuckDBPyConnection:
        return recompute.decoded([self.records], EVERY_SCHEMA)


def _is_decided(view: Served) -> bool:
    """Whether neither duplicates and rejects nor the order of micro-batches are in the answer."""
    contracts, stored = project_contracts(), stored_of(view)
    return not stored.side_inputs and not any(contracts.of(name).is_outcome for name in stored.event_types)


def oracle(*, records: Path, until: Mapping[Partition, int], now: datetime, log: ds.Dataset, cut: int) -> AsSent:
    """An `expected.MakeOracle`."""
    sent = pq.read_table(settings().home / FILE)
    alerts = ds.dataset(records).to_table(filter=ds.field("topic").isin([*alert_topics()]))
    logged = alerts.select(row_types.RECORD.names).cast(row_types.RECORD)
    return AsSent(pa.concat_tables([sent.cast(row_types.RECORD), logged]), now, project_views())
