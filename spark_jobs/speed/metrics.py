"""Metrics of the platform, by the one process that knows most of them.

status (what was counted), Spark's progress, hot tables, ledger -> families -> text for Prometheus on `metrics_port`.
Nothing is computed before somebody asks: a micro-batch only adds up its numbers.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from spark_jobs.ledger.alarms import kind_of
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.speed.status import Status
from spark_jobs.storage import tables

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PROBLEM = "metrics"
FRESH_SECONDS = 1.0
"""Whoever asks again within this time is given the same numbers."""
HOT = (tables.MASTER_LOG, tables.SPEED_PARTIALS)

Sample = tuple[str, str, float]
"""A family, the value of its label ("" where it has none), the number."""


@dataclass(frozen=True)
class Family:
    """Samples of one name, told apart by a label. A counter only grows, from 0 at the application's start."""

    help: str
    label: str = ""
    is_counter: bool = False


FAMILIES = {
    "tidemark_records": Family("Kafka records that have landed.", "topic", is_counter=True),
    "tidemark_rejects": Family("Records that no schema accepts.", "topic", is_counter=True),
    "tidemark_outcomes": Family("Records by outcome: facts, rejects, duplicates.", "outcome", is_counter=True),
    "tidemark_micro_batches": Family("Micro-batches that are complete.", is_counter=True),
    "tidemark_micro_batch_seconds": Family("Time in the steps of micro-batches.", "step", is_counter=True),
    "tidemark_spark_progress_seconds": Family("Spark's durationMs of the last micro-batch, in seconds.", "phase"),
    "tidemark_lag_records": Family("Records in Kafka that have not landed.", "topic"),
    "tidemark_lag_seconds": Family("Age of the oldest record in Kafka that has not landed.", "topic"),
    "tidemark_lsn": Family("The newest lsn: landed, and published (the cut).", "of"),
    "tidemark_table_files": Family("Files of a hot table's newest version.", "table"),
    "tidemark_table_rows": Family("Rows of a hot table's newest version.", "table"),
    "tidemark_publications": Family("Publications that were done, by kind.", "kind"),
    "tidemark_view_cut_lsn": Family("The lsn up to which a view's build answers.", "view"),
    "tidemark_views_missing": Family("Views without a full coverage: filling, or set aside.", "why"),
    "tidemark_audit_passed": Family("Whether the newest audit passed."),
    "tidemark_agreement_rows": Family("Rows that differed between batch and speed at the newest audit.", "cause"),
    "tidemark_alarms": Family("Alarms that ring.", "kind"),
}


class Metrics:
    """A collector of prometheus-client."""

    def __init__(self, status: Status, store: Store) -> None:
        self._status, self._store = status, store
        self.query: StreamingQuery | None = None
        self._hot: dict[str, DeltaTable] = {}
        self._lock, self._known, self._known_at = threading.Lock(), dict[str, dict[str, float]](), 0.0

    def describe(self) -> list[Metric]:
        """For the registry, which would otherwise collect at its start."""
        return [_family(name, {}) for name in FAMILIES]

    def collect(self) -> Iterator[Metric]:
        known = self.known()
        yield from (_family(name, known[name]) for name in FAMILIES)

    def known(self) -> Mapping[str, Mapping[str, float]]:
        """Family -> value of its label -> number, as of now."""
        with self._lock:
            if time.monotonic() - self._known_at > FRESH_SECONDS:
                self._known = {name: {} for name in FAMILIES}
                for name, label, number in self._samples():
                    self._known[name][label] = number
                self._known_at = time.monotonic()
            return self._known

    def _samples(self) -> Iterator[Sample]:
        yield from _of_application(self._status)
        progress = self.query.lastProgress if self.query else None
        for phase, took in (progress["durationMs"] if progress else {}).items():
            yield "tidemark_spark_progress_seconds", phase, took / 1000
        for name in HOT:
            yield from self._of_table(name)
        yield from _of_ledger(self._store)

    def _of_table(self, name: str) -> Iterator[Sample]:
        root = tables.path(name)
        if name not in self._hot and not DeltaTable.is_deltatable(root):
            return
        table = self._hot.setdefault(name, DeltaTable(root))
        table.update_incremental()
        files = pa.table(table.get_add_actions())
        yield "tidemark_table_files", name, files.num_rows
        yield "tidemark_table_rows", name, pc.sum(files["num_records"]).as_py() or 0


@contextmanager
def offered(metrics: Metrics, status: Status) -> Iterator[None]:
    """On `metrics_port`, and sent to `otlp_endpoint`. A door that does not open is an alarm, and stops nothing."""
    registry, endpoint = CollectorRegistry(), settings().otlp_endpoint
    registry.register(metrics)
    with ExitStack() as opened:
        try:
            server, _ = start_http_server(settings().metrics_port, settings().host, registry)
            opened.callback(server.server_close)
            opened.callback(server.shutdown)
        except OSError as error:
            status.problem(PROBLEM, f"no metrics on port {settings().metrics_port}: {error}")
        if endpoint:
            from spark_jobs.speed.otlp import sending

            opened.enter_context(sending(metrics, endpoint))
        yield


def _family(name: str, samples: Mapping[str, float]) -> Metric:
    about = FAMILIES[name]
    made = CounterMetricFamily if about.is_counter else GaugeMetricFamily
    labels = [about.label] if about.label else []
    family = made(name, about.help, labels=labels)
    for label, number in samples.items():
        family.add_metric([label] if labels else [], number)
    return family


def _of_application(status: Status) -> Iterator[Sample]:
    numbers = status.numbers()
    for (what, label), number in numbers.totals.items():
        yield f"tidemark_{what}", label, number
    for step, seconds in numbers.seconds.items():
        yield "tidemark_micro_batch_seconds", step, seconds
    for topic, records in numbers.state.get("lag_by_topic", {}).items():
        yield "tidemark_lag_records", topic, records
        yield "tidemark_lag_seconds", topic, numbers.state.get("lag_seconds", {}).get(topic, 0.0)
    yield "tidemark_lsn", "landed", numbers.state["lsn"]
    yield "tidemark_views_missing", "aside", numbers.views_aside
    yield "tidemark_views_missing", "filling", len(numbers.state.get("filling", ()))


def _of_ledger(store: Store) -> Iterator[Sample]:
    current, audit = store.current_publication(), store.last_audit()
    yield "tidemark_lsn", "published", current.cut if current else 0
    for kind, number in store.publications_of_each_kind().items():
        yield "tidemark_publications", kind, number
    for view, source in store.sources(current).items():
        yield "tidemark_view_cut_lsn", view, source.cut
    for kind, number in Counter(kind_of(alarm.name) for alarm in store.raised_alarms()).items():
        yield "tidemark_alarms", kind, number
    if audit is not None:
        yield "tidemark_audit_passed", "", int(audit.passed)
        rows, run = defaultdict[str, int](int, {UNEXPLAINED: 0}), store.run(audit.run_id)
        for view in run.summary.get(AGREEMENT, ()) if run else ():
            for cause, number in view["causes"].items():
                rows[cause] += number
        for cause, number in rows.items():
            yield "tidemark_agreement_rows", cause, number
