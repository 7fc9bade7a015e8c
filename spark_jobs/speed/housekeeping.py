"""Between micro-batches: heartbeat, lag and retention alarms, compaction of closed spans, requests of others.

clock + ledger requests -> OPTIMIZE / DELETE on the hot tables, under the same turn as the micro-batches, so that the
two tables keep their one writer.
"""

import datetime as dt
import logging
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs import tables
from spark_jobs.ledger.models import Request
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.speed import hot
from spark_jobs.speed.broker import Broker
from spark_jobs.speed.protocol import LogEnd
from spark_jobs.speed.status import Status
from spark_jobs.vacuum import vacuum

log = logging.getLogger("tidemark.speed.housekeeping")

SMALL_FILE = 64 * 2**20
"""Bytes; larger files are not written again."""
HOT = (tables.MASTER_LOG, tables.SPEED_PARTIALS)
UNREAD_HOURS = 24
"""How long a file stays that the newest version does not name; no reader takes so long."""
MANY_SMALL_FILES = 8
"""A partition with fewer small files than this is left as it is."""


class Housekeeping:
    """A thread beside the query; `turn` is the lock that a micro-batch holds."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        broker: Broker,
        status: Status,
        turn: threading.Lock,
        end: Callable[[], LogEnd],
    ) -> None:
        self._spark, self._store, self._broker, self._status = spark, store, broker, status
        self._turn, self._end = turn, end
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._compacted_span = hot.current_span() - 1
        self._retention = broker.retention_ms()

    def __enter__(self) -> "Housekeeping":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopped.wait(settings().heartbeat_seconds):
            try:
                self._look()
                self._compact_closed_spans()
                self._answer_one_request()
            except Exception as error:
                log.exception("housekeeping goes on after an error")
                self._status.set(alarms={"housekeeping": str(error).splitlines()[0]})

    def _look(self) -> None:
        """Lag per topic, and the alarm when what is unread nears Kafka's retention (I14)."""
        with self._turn:
            end, partitions = self._end(), self._broker.partitions()[1]
            available = self._broker.available(partitions)
        lag: dict[str, int] = {}
        alarms: dict[str, str] = {}
        for (topic, partition), (earliest, latest) in available.items():
            position = end.offsets.get((topic, partition), earliest)
            lag[topic] = lag.get(topic, 0) + latest - position
            if position < latest and self._is_old(topic):
                alarms[f"retention: {topic}"] = f"unread records of partition {partition} near the end of retention"
        self._status.set(lag=sum(lag.values()), lag_by_topic=lag, alarms=alarms)

    def _is_old(self, topic: str) -> bool:
        retention = self._retention.get(topic)
        last = self._status.last_batch_at()
        if retention is None or last is None:
            return False
        age_ms = (dt.datetime.now(dt.UTC) - last).total_seconds() * 1000
        return age_ms > retention * settings().retention_alarm_share

    def _compact_closed_spans(self) -> None:
        """Once a span is over: join the small files of closed spans, and of the log's days; the rows stay the same."""
        closed = hot.current_span() - 1
        if closed <= self._compacted_span:
            return
        for span in fragmented(_files(tables.SPEED_PARTIALS), "span"):
            if span <= closed:
                self._compact(tables.SPEED_PARTIALS, f"span = {int(span)}")
        for day in fragmented(_files(tables.MASTER_LOG), "landed_on"):
            self._compact(tables.MASTER_LOG, f"landed_on = DATE '{day:%Y-%m-%d}'")
        self._compacted_span = closed

    def _compact(self, table: str, where: str) -> None:
        with self._turn:
            self._spark.sql(f"OPTIMIZE {tables.by_path(table)} WHERE {where}")
        log.info("compacted %s where %s", table, where)

    def _answer_one_request(self) -> None:
        request = self._store.next_request(["compact", "trim"])
        if request is None:
            return
        try:
            answer = self._answer(request)
        except Exception as error:
            self._store.answer_request(request.id, {"error": str(error)}, failed=True)
            raise
        self._store.answer_request(request.id, answer)

    def _answer(self, request: Request) -> dict[str, Any]:
        partials = tables.by_path(tables.SPEED_PARTIALS)
        with self._turn:
            if request.kind == "compact":
                self._spark.sql(f"OPTIMIZE {partials}")
                return {}
            below = int(request.arguments["up_to_lsn"])
            in_window = hot.current_span() - settings().id_window_seconds // settings().span_seconds - 1
            self._spark.sql(f"DELETE FROM {partials} WHERE lsn <= {below} AND span < {in_window}")
        # Outside the turn: it lists whole tables, and touches no file that a micro-batch writes or reads.
        files = {table: vacuum(table, UNREAD_HOURS) for table in HOT}
        return {"trimmed_up_to": below, "files_removed": files}


def fragmented(files: pa.Table, partitioned_by: str) -> list[Any]:
    """Partitions with many small files, in order. `files`: a table's add actions, flat."""
    small = files.filter(pc.less(files["size_bytes"], SMALL_FILE))
    counted = Counter(small[f"partition.{partitioned_by}"].to_pylist())
    return sorted(partition for partition, count in counted.items() if count >= MANY_SMALL_FILES)


def _files(table: str) -> pa.Table:
    return pa.table(DeltaTable(tables.path(table)).get_add_actions(flatten=True))
