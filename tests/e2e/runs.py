"""What a person does with a platform from outside: send a record, start a run, ask."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spark_jobs.settings import ROOT
from tests.platform import Platform

ENDED = ("success", "failed")
QUESTIONS = (
    "SELECT * FROM serving.orders_by_colour",
    "SELECT store_id, sum(orders), sum(revenue_cents) FROM serving.orders_by_day GROUP BY store_id",
    "SELECT status, count(*) FROM serving.trades GROUP BY status",
    "SELECT count(*), sum(pages) FROM serving.sessions",
    "SELECT word, occurrences FROM serving.word_count",
    "SELECT * FROM serving.bus_latest",
)


def answers(platform: Platform) -> list[list[tuple[Any, ...]]]:
    return [sorted(platform.sql(question), key=repr) for question in QUESTIONS]


def orders(platform: Platform) -> int:
    return int(platform.sql("SELECT coalesce(sum(orders), 0) FROM serving.orders_by_colour")[0][0])


def moment(days_ago: int = 0) -> str:
    """Noon of a day within the horizon of the sequence views; an older row would wait for the next build."""
    day = datetime.now(UTC).date() - timedelta(days=days_ago)
    return f"{day}T12:00:00.000Z"


def order(colour: str = "red", **changes: Any) -> str:
    example = json.loads((ROOT / "schemas/events/order_placed.v1.json").read_text())["examples"][0]
    new = {"event_id": str(uuid.uuid4()), "order_id": str(uuid.uuid4()), "colour": colour}
    return json.dumps({**example, **new, **changes})


def send(platform: Platform, tmp_path: Path, *values: str, topic: str = "order_placed") -> None:
    file = tmp_path / "values"
    file.write_text("".join(f"{value}\n" for value in values))
    platform.tidemark("send", topic, "--file", str(file))


def trigger_batch_layer(platform: Platform, **how: str) -> str:
    """A run by REST; its id."""
    return str(platform.airflow("/dags/batch_layer/dagRuns", {"logical_date": None, **how})["dag_run_id"])


def state_of(platform: Platform, run_id: str) -> str:
    return str(platform.airflow(f"/dags/batch_layer/dagRuns/{run_id}")["state"])
