"""Metrics: what is counted and stored comes out of the local port, of OpenTelemetry, and fits the dashboard."""

import datetime as dt
import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from infra.embedded.shadow import free_ports
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import UNBUILT
from spark_jobs.ledger.store import Store
from spark_jobs.settings import ROOT, settings
from spark_jobs.speed.metrics import FAMILIES, PROBLEM, Metrics, offered
from spark_jobs.speed.status import Status
from tests.publishing import computed, landed

DASHBOARD = ROOT / "infra/grafana/tidemark.json"


@pytest.fixture
def store(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    [port] = free_ports(1)
    monkeypatch.setenv("TIDEMARK_METRICS_PORT", str(port))
    settings.cache_clear()
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def metrics(store: Store) -> Metrics:
    """The metrics after two micro-batches, in a platform with a publication, an audit and an alarm."""
    status = Status(store)
    for lsn in (1, 2):
        counts = {"facts": 8, "rejects": 1, "duplicates": 1}
        status.batch(lsn, 10, counts, {"read": 0.5, "land": 0.25}, {"order_placed": 10}, {"order_placed": 1})
    status.set(lag_by_topic={"order_placed": 7}, lag_seconds={"order_placed": 1.5}, filling=["a", "b"])
    computed({1: dt.timedelta(0), 2: dt.timedelta(0)})
    landed(1, 2)
    store.finish_publication(store.begin_publication("initial", {"word_count_v1": UNBUILT}, cut=1).id)
    store.begin_run(Run(run_id="monday", cut=2))
    store.progress("monday", "audit", **{AGREEMENT: [{"view": "word_count", "causes": {"duplicate": 3}}]})
    store.record_audit("monday", passed=True)
    store.settle_alarms({"lag: order_placed": "old", "lag: page_viewed": "old"})
    made = Metrics(status, store)
    made.query = SimpleNamespace(lastProgress={"durationMs": {"addBatch": 1500}})  # type: ignore[assignment]
    return made


EXPECTED = {
    ("tidemark_records_total", "order_placed"): 20,
    ("tidemark_rejects_total", "order_placed"): 2,
    ("tidemark_outcomes_total", "duplicates"): 2,
    ("tidemark_micro_batches_total", ""): 2,
    ("tidemark_micro_batch_seconds_total", "land"): 0.5,
    ("tidemark_spark_progress_seconds", "addBatch"): 1.5,
    ("tidemark_lag_records", "order_placed"): 7,
    ("tidemark_lag_seconds", "order_placed"): 1.5,
    ("tidemark_lsn", "landed"): 2,
    ("tidemark_lsn", "published"): 1,
    ("tidemark_table_files", "speed.partials"): 1,
    ("tidemark_table_rows", "master.log"): 2,
    ("tidemark_publications", "initial"): 1,
    ("tidemark_view_cut_lsn", "word_count_v1"): 0,
    ("tidemark_views_missing", "filling"): 2,
    ("tidemark_audit_passed", ""): 1,
    ("tidemark_agreement_rows", "duplicate"): 3,
    ("tidemark_agreement_rows", "unexplained"): 0,
    ("tidemark_alarms", "lag"): 2,
}


def url() -> str:
    return f"http://127.0.0.1:{settings().metrics_port}/metrics"


def test_the_local_port_shows_what_is_counted_and_stored(metrics: Metrics) -> None:
    with offered(metrics, metrics._status):
        text = urllib.request.urlopen(url(), timeout=30).read().decode()
        listening = [door.laddr for door in psutil.Process().net_connections("inet") if door.status == "LISTEN"]
        changed = urllib.request.Request(url(), b"x", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(changed, timeout=30)
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    shown = {(sample.name, next(iter(sample.labels.values()), "")): sample.value for sample in samples}
    assert {key: shown[key] for key in EXPECTED} == EXPECTED
    assert {name.removesuffix("_total") for name, _ in shown} == set(FAMILIES)
    assert [door.ip for door in listening if door.port == settings().metrics_port] == ["127.0.0.1"]


def test_a_port_that_is_taken_is_an_alarm_and_stops_nothing(metrics: Metrics, store: Store) -> None:
    status = metrics._status
    with offered(metrics, status), offered(metrics, status):
        status.beat()
        beat = store.heartbeat("speed")
        assert beat is not None and beat.payload["alarms"][PROBLEM].startswith("no metrics on port")


class Collector(BaseHTTPRequestHandler):
    """A collector of OpenTelemetry: keeps what is posted."""

    taken: list[bytes]

    def do_POST(self) -> None:
        self.taken.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_the_same_is_sent_to_a_collector_where_a_setting_names_one(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    Collector.taken = []
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TIDEMARK_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}/v1/metrics")
    settings.cache_clear()
    with offered(metrics, metrics._status):
        pass  # what is left is sent at the end
    server.shutdown()
    sent = ExportMetricsServiceRequest.FromString(Collector.taken[-1]).resource_metrics[0].scope_metrics[0].metrics
    assert {metric.name for metric in sent} == set(FAMILIES)
    [records] = [metric.sum for metric in sent if metric.name == "tidemark_records"]
    assert records.is_monotonic and [point.as_double or point.as_int for point in records.data_points] == [20]


def test_opentelemetry_is_imported_where_it_is_wanted_alone() -> None:
    code = "import sys, spark_jobs.speed.metrics; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_the_dashboard_asks_for_metrics_and_labels_that_exist_and_for_each_of_them() -> None:
    labels = {f"{name}_total" if family.is_counter else name: family.label for name, family in FAMILIES.items()}
    asked = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for query in (target["expr"] for target in panel["targets"]):
            names = set(re.findall(r"tidemark_\w+", query))
            assert names and names <= labels.keys(), query
            grouped = {*re.findall(r"by \((\w+)\)", query), *re.findall(r"\{(\w+)=", query)}
            assert grouped <= {labels[name] for name in names}, query
            asked |= names
    assert asked == labels.keys()
