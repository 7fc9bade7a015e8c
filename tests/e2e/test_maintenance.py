"""C5: the maintenance DAGs against the running platform, as Airflow runs them."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.timeout(1800)]


def ends(platform: Platform, dag_id: str) -> str:
    """The state in which a run by hand ends."""
    run = platform.airflow(f"/dags/{dag_id}/dagRuns", {"logical_date": None})["dag_run_id"]
    states: list[str] = []

    def has_ended() -> bool:
        states.append(platform.airflow(f"/dags/{dag_id}/dagRuns/{run}")["state"])
        return states[-1] in ("success", "failed")

    await_true(has_ended, 600, f"{dag_id} does not end", every=1)
    return states[-1]


def test_c5_the_hour_mirrors_the_ledger_for_sql_readers(platform: Platform) -> None:
    assert ends(platform, "maintenance_hourly") == "success"
    assert platform.sql("SELECT count(*) FROM ops.publications")[0][0] > 0


@pytest.mark.fault
def test_c5_the_night_verifies_removes_and_cleans(platform: Platform) -> None:
    platform.tidemark("generate", "--events", "5000", "--seed", "3")
    await_true(lambda: platform.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
    with closing(sqlite3.connect(platform.settings.airflow_dir / "airflow.db", timeout=60)) as database:
        database.execute("INSERT INTO log (dttm, event) VALUES ('2020-01-01 00:00:00', 'long ago')")
        database.commit()
        assert ends(platform, "maintenance") == "success"
        assert database.execute("SELECT count(*) FROM log WHERE event = 'long ago'").fetchone() == (0,)
    shown = json.loads(platform.tidemark("verify", "--last", "--json"))
    states = {one["state"] for one in shown}
    assert "holds" in states and states <= {"holds", "nothing yet", "not looked at"}, "a night looks as long as it may"
    assert platform.sql("SHOW SCHEMAS LIKE 'pin_verify*'") == []
