"""I18 on a whole platform: one of a thousand users is forgotten, by the commands; nothing of them is in any file."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contracts.loader import project_contracts
from tests import traces
from tests.e2e.runs import ENDED, moment, send, state_of, trigger_batch_layer
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault, pytest.mark.timeout(2400)]

USER, NAME = 720_575_940_379, "Vanishing Vera"
VIEW = "serving.page_views_per_user_hour"
OF_OTHERS = ("kafka", "tmp", "airflow")
"""Kafka keeps its own copy for the topic's retention; scratch of a running Spark goes when it ends; Airflow's logs."""


def record(event_type: str, user: int, **fields: Any) -> str:
    example = project_contracts().of(event_type).examples[1]
    field = "person_id" if "person_id" in example else "user_id"
    return json.dumps({**example, field: user, "occurred_at": moment(), **fields})


def run(platform: Platform) -> None:
    started = trigger_batch_layer(platform)
    await_true(lambda: state_of(platform, started) in ENDED, 900, f"{started} does not end", every=2)
    assert state_of(platform, started) == "success"


def finished(platform: Platform) -> bool:
    """Marts are made after the run, by their own DAG; until then the command says what it waits for."""
    told = platform.tidemark("erasures", "finish", "--if-ready")
    return "records are gone" in told


def test_i18_one_of_a_thousand_users_is_forgotten(platform: Platform, tmp_path: Path) -> None:
    users = [*range(1_000_001, 1_001_000), USER]
    send(platform, tmp_path, *(record("page_viewed", user) for user in users), topic="page_viewed")
    send(platform, tmp_path, record("vitals_measured", USER), topic="vitals_measured")
    send(platform, tmp_path, record("profile_changed", USER, name=NAME), topic="profile_changed")
    send(platform, tmp_path, f'{{"user_id": {USER}, "note": "{NAME}"')
    count = f"SELECT count(*), count_if(user_id = {USER}) FROM {VIEW} WHERE user_id > 1000000"
    await_true(lambda: platform.sql(count) == [(1000, 1)], 120, "the page views do not count")
    run(platform)
    platform.tidemark("pin", "create", "with_her")
    home = platform.settings.home
    assert traces.of(home, USER, NAME, OF_OTHERS)
    because = ("--reason", "request 2026-17", "--by", "ada")
    told = platform.tidemark("erase", f"user={USER}", *because)
    assert "page_viewed: 1 records" in told and "order_placed: 1 records" in told and "erasure 1" in told
    run(platform)
    await_true(lambda: finished(platform), 600, "the erasure does not end", every=10)
    assert platform.sql(count) == [(999, 0)]
    assert (found := traces.of(home, USER, NAME, OF_OTHERS)) == [], "\n".join(found)
    [one] = json.loads(platform.tidemark("erasures", "list", "--json"))
    assert (one["state"], one["kind"], one["reason"]) == ("finished", "user", "request 2026-17")
    assert "with_her" not in platform.tidemark("pin", "list")
    assert platform.tidemark("verify")
    run(platform)
    assert platform.sql(count) == [(999, 0)] and traces.of(home, USER, NAME, OF_OTHERS) == []
