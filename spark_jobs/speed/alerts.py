"""Send an event to Kafka for each row that a view picks out.

speed.partials (rows of the view, by lsn) -> where -> events, byte for byte the same at each try -> their topic.
The ledger says up to which lsn they are sent. Only what a crash interrupted is sent again, and has the same event_id.
"""

import json
import logging
import threading
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.definitions.spec import SOURCE_LSN, Alert
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, instant, quote, rendered
from spark_jobs.ledger.store import Store
from spark_jobs.messaging.producer import Producer, Record
from spark_jobs.speed import partials_table
from spark_jobs.speed.status import JOIN_SECONDS, Status

log = logging.getLogger("tidemark.speed.alerts")

NAMESPACE = uuid.UUID("6d1f7c1e-0b0e-5c57-9a9b-5f0f5a4f6b1d")
PRODUCER = b"tidemark-alerts"
PROBLEM = "alerts"
PAUSE_SECONDS = 1.0
D = Dialect.DUCKDB


class Alerts:
    """A thread beside the query: landing does not wait for it, and a broker that is away is an alarm."""

    def __init__(self, views: Iterable[View], store: Store, status: Status) -> None:
        self._views = [view for view in views if isinstance(view, SequenceView) and view.declaration.alert]
        self._store, self._status = store, status
        self._upto, self._again = 0, dict[str, int]()
        self._producer: Producer | None = None
        self._news, self._stopped = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        if self._views:
            self._thread.start()

    def close(self) -> None:
        """Stop, at the latest after what is being sent."""
        self._stopped.set()
        with self._news:
            self._news.notify()
        if self._views:
            self._thread.join(timeout=JOIN_SECONDS)

    def notify(self, first: int, last: int, views: Collection[str] | None = None) -> None:
        """There are partials of these lsns now; of these views (columns), or of all."""
        with self._news:
            self._upto = max(self._upto, last)
            for view in self._views:
                if views is None or view.column in views:
                    self._again[view.column] = min(first, self._again.get(view.column, first))
            self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._again or self._stopped.is_set())
                if self._stopped.is_set():
                    self._disconnect()
                    return
                first, upto, self._again = self._again, self._upto, {}
            try:
                self._send(first, upto)
            except Exception as error:
                log.exception("alerts wait, and are tried again")
                self._disconnect()
                self._status.problem(PROBLEM, (str(error) or repr(error)).splitlines()[0])
                for view, lsn in first.items():
                    self.notify(lsn, upto, [view])
                self._stopped.wait(PAUSE_SECONDS)
            else:
                self._status.problem(PROBLEM, None)

    def _send(self, first: Mapping[str, int], upto: int) -> None:
        """Lsn by lsn, each acknowledged and written down before the next."""
        due: dict[int, list[Record]] = defaultdict(list)
        sent, views = self._store.alerts_sent(), [view for view in self._views if view.column in first]
        for view in views:
            for lsn, record in _due(view, min(sent.get(view.column, 0), first[view.column] - 1), upto):
                due[lsn].append(record)
        for lsn, records in sorted(due.items()):
            self._connected().send(records)
            self._written_down(views, sent, lsn)
        self._written_down(views, sent, upto)

    def _connected(self) -> Producer:
        """One connection for all alerts, until something fails: each would ask for a login of its own."""
        self._producer = self._producer or Producer()
        return self._producer

    def _disconnect(self) -> None:
        if self._producer:
            self._producer.close()
        self._producer = None

    def _written_down(self, views: Iterable[View], before: Mapping[str, int], lsn: int) -> None:
        """The ledger never goes back: catch-up sends of lsns below what is sent."""
        self._store.record_alerts_sent({view.column: max(lsn, before.get(view.column, 0)) for view in views})


def _due(view: SequenceView, above: int, upto: int) -> Iterator[tuple[int, Record]]:
    alert = view.declaration.alert
    assert alert is not None
    contract = project_contracts().of(alert.of)
    rows = rows_of(view, above, upto)
    headers = (("schema_version", str(contract.version).encode()), ("producer", PRODUCER))
    for event in events(view, alert, rows) if rows.num_rows else ():
        key = str(event[contract.key]).encode()
        yield event[SOURCE_LSN], Record(contract.topic, key, encoded(event), headers)


def rows_of(view: SequenceView, above: int, upto: int) -> pa.Table:
    """The view's rows of (above, upto] in speed.partials: lsn and its stored columns."""
    lsn, names = pc.field("lsn"), view.partial_schema.names
    columns = {"lsn": lsn, **{name: pc.field(view.column, name) for name in names}}
    return partials_table.read(view.column, columns, above + 1, upto)


def events(view: SequenceView, alert: Alert, rows: pa.Table) -> Iterator[dict[str, Any]]:
    """An event of each row that the alert is about, in the order of the log."""
    assert view.alert_where is not None
    fields = [field.name for field in project_contracts().of(alert.of).fields]
    columns = [f"key AS {quote(view.key, D)}", *(quote(name, D) for name in view.columns), f"lsn AS {SOURCE_LSN}"]
    at = f"strftime({instant('ts', D)}, '%Y-%m-%dT%H:%M:%S.%gZ')"
    own = f"SELECT {', '.join(columns)}, {at} AS occurred_at, tie FROM rows"
    with duckdb_session.shared().cursor() as con:
        con.register("rows", rows)
        where = rendered(view.alert_where, D)
        picked = con.sql(f"SELECT * FROM ({own}) WHERE {where} ORDER BY {SOURCE_LSN}, tie").to_arrow_table()
    for row in picked.to_pylist():
        same = json.dumps([view.name, *(row[name] for name in alert.same)])
        yield {
            # The same for the same row, whenever and however often it is sent (RFC 9562, version 5).
            "event_id": str(uuid.uuid5(NAMESPACE, same)),
            "event_type": alert.of,
            "occurred_at": row["occurred_at"],
            **{name: row[name] for name in fields},
        }


def encoded(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()
