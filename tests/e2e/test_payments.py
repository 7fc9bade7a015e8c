"""Stream to stream: a flagged payment is an alert on its topic within seconds, known again when it is told twice."""

import json
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaConsumer

from spark_jobs.contracts.loader import project_contracts
from tests.kafka_topics import all_of
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.slow, pytest.mark.platform, pytest.mark.timeout(600)]
TOPIC = "alerts.payments"


def event(event_type: str, **changes: Any) -> str:
    example = project_contracts().of(event_type).examples[0]
    return json.dumps({**example, "event_id": str(uuid.uuid4()), **changes})


def send(platform: Platform, folder: Path, event_type: str, *values: str) -> None:
    (folder / "values").write_text("".join(f"{value}\n" for value in values))
    platform.tidemark("send", project_contracts().of(event_type).topic, "--file", str(folder / "values"))


def alerts(platform: Platform, prefix: str) -> list[dict[str, Any]]:
    """Those of the payments with this prefix, as often as they were told."""
    with closing(KafkaConsumer(bootstrap_servers=platform.settings.kafka, enable_auto_commit=False)) as consumer:
        found = [json.loads(record.value) for record in all_of(consumer, TOPIC)]
    return [one for one in found if one["payment_id"].startswith(prefix)]


def scored(platform: Platform, prefix: str) -> dict[str, tuple[float | None, int | None]]:
    query = f"SELECT payment_id, score, model_version FROM serving.payments_scored WHERE payment_id LIKE '{prefix}%'"
    return {payment: (score, version) for payment, score, version in platform.sql(query)}


def test_a_payment_is_scored_and_told_of_once_though_the_speed_layer_dies(platform: Platform, tmp_path: Path) -> None:
    prefix = f"told-{uuid.uuid4().hex[:8]}-"
    send(platform, tmp_path, "payments_model_promoted", event("payments_model_promoted", intercept=-1.0))
    await_true(lambda: platform.heartbeat().get("lag") == 0, 60, "the model does not land")
    amounts = {"small": 2_000, "large": 100_000, "larger": 200_000}
    sent = [event("payment_attempted", payment_id=prefix + name, amount_cents=cents) for name, cents in amounts.items()]
    send(platform, tmp_path, "payment_attempted", *sent)
    await_true(lambda: len(alerts(platform, prefix)) == 2, 60, "the alerts do not come")
    scores = scored(platform, prefix)
    assert {name.removeprefix(prefix): score for name, (score, _) in scores.items()} == {
        "small": -1 + 0.25 * 0.02, "large": -1 + 0.25 + 2, "larger": -1 + 0.25 * 2 + 2,
    }  # fmt: skip
    told = {one["payment_id"]: one for one in alerts(platform, prefix)}
    assert {one["payment_id"]: (one["score"], one["model_version"]) for one in told.values()} == {
        name: found for name, found in scores.items() if (found[0] or 0) > 0
    }
    pid = platform.status()["parts"]["speed"]["pid"]
    psutil.Process(pid).kill()
    platform.await_ready("speed", other_than=pid)
    await_true(lambda: len(alerts(platform, prefix)) >= 2, 60, "the alerts are gone")
    send(
        platform,
        tmp_path,
        "payment_attempted",
        event("payment_attempted", payment_id=f"{prefix}new", amount_cents=300_000),
    )
    await_true(lambda: f"{prefix}new" in {one["payment_id"] for one in alerts(platform, prefix)}, 60, "no new alert")
    again = alerts(platform, prefix)
    assert {json.dumps(one) for one in again} >= {json.dumps(one) for one in told.values()}
    assert len({one["event_id"] for one in again}) == 3, "what is told twice has the same id, and counts once"
