"""Send the same metrics to an OpenTelemetry collector, where the setting `otlp_endpoint` names one.

Metrics -> observable instruments -> OTLP over HTTP, once a minute (or as OTEL_METRIC_EXPORT_INTERVAL says).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource

from spark_jobs.speed.metrics import FAMILIES, Metrics

LAST_MS = 2_000


@contextmanager
def sending(metrics: Metrics, endpoint: str) -> Iterator[MeterProvider]:
    """Send them meanwhile, and once more at the end."""
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint))
    provider = MeterProvider([reader], resource=Resource.create({SERVICE_NAME: "tidemark"}))
    meter = provider.get_meter("tidemark")
    for name, family in FAMILIES.items():
        create = meter.create_observable_counter if family.is_counter else meter.create_observable_gauge
        create(name, [partial(_observed, metrics, name)], description=family.help)
    try:
        yield provider
    finally:
        provider.shutdown(LAST_MS)


def _observed(metrics: Metrics, name: str, options: CallbackOptions) -> Iterable[Observation]:
    label = FAMILIES[name].label
    for value, number in metrics.known()[name].items():
        yield Observation(number, {label: value} if label else {})
