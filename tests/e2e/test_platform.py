"""The running platform: its doors, its secrets, its commands."""

import json
import subprocess
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import psutil
import pytest

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.orchestration.interface import ALARM_RAISED, SPEED_SILENT
from spark_jobs.settings import ROOT
from spark_jobs.storage.java import ARCHIVES
from tests.platform import NEW_SCHEMA, PORTS, Platform, await_true

pytestmark = pytest.mark.platform
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_every_door_is_on_loopback(platform: Platform) -> None:
    ours = {process.pid for process in platform.processes()}
    doors = [
        (door.pid, door.laddr.ip, door.laddr.port)
        for door in psutil.net_connections("inet")
        if door.pid in ours and door.status == psutil.CONN_LISTEN
    ]
    assert {port for _, _, port in doors} >= {getattr(platform.settings, name) for name in PORTS}
    assert [door for door in doors if door[1] not in LOOPBACK] == []


def test_a_new_schema_comes_in_force_when_the_speed_layer_starts(platform: Platform) -> None:
    listed = json.loads(platform.tidemark("schemas", "--format", "json"))
    lsns = {one["schema"]: one["in_force_from"] for one in listed}
    assert {name: lsn for name, lsn in lsns.items() if lsn != 0} == {NEW_SCHEMA: 1}
    text = f"SELECT lsn, CAST(value AS STRING) FROM master.log WHERE kind = 'schema' AND key = '{NEW_SCHEMA}'"
    [(lsn, schema)] = platform.sql(text)
    assert (lsn, json.loads(schema)) == (1, project_contracts().of("page_viewed").schema)
    [(verdict,)] = platform.sql("SELECT count(*) FROM speed.partials WHERE view = '__batch__' AND lsn = 1")
    assert verdict == 1, "an lsn like any other"


@pytest.mark.skipif(not psutil.LINUX, reason="what a process maps is shown by Linux alone")
@pytest.mark.parametrize(
    ("part", "archive"),
    [("broker", "kafka"), ("metastore", "metastore"), ("thrift", "spark"), ("speed", "spark")],
)
def test_every_jvm_maps_the_classes_archived_for_it(platform: Platform, part: str, archive: str) -> None:
    jvms = [process for process in platform.processes(part) if process.name() == "java"]
    mapped = [{file.path for file in jvm.memory_maps()} for jvm in jvms]
    assert [str(ARCHIVES / f"{archive}.jsa") in files for files in mapped] == [True]


def test_up_a_second_time_changes_nothing(platform: Platform) -> None:
    before = {name: part["pid"] for name, part in platform.status()["parts"].items()}
    platform.tidemark("up")
    assert {name: part["pid"] for name, part in platform.status()["parts"].items()} == before


def test_up_with_another_port_is_refused_by_the_settings_name(platform: Platform) -> None:
    other = Platform(platform.settings.model_copy(update={"thrift_port": 1}))
    refused = other.run("up")
    assert refused.returncode == 1
    assert "another thrift_port" in refused.stderr


def test_status_says_that_every_part_answers(platform: Platform) -> None:
    now = platform.status()
    assert now["ready"], json.dumps(now, indent=2)
    assert {name for name, part in now["parts"].items() if not part["ready"]} == {"generator"}


def test_sql_comes_back_through_thrift(platform: Platform) -> None:
    assert platform.sql("select 1 + 1") == [(2,)]


def test_airflow_refuses_anonymous_calls_and_answers_its_administrator(platform: Platform) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{platform.settings.airflow_url}/api/v2/dags", timeout=60)
    assert refused.value.code == 401
    assert "dags" in platform.airflow("/dags")


def test_the_speed_application_shows_its_metrics_and_sparks_own(platform: Platform) -> None:
    shown = urllib.request.urlopen(f"http://127.0.0.1:{platform.settings.metrics_port}/metrics", timeout=60)
    text = shown.read().decode()
    assert 'tidemark_spark_progress_seconds{phase="triggerExecution"}' in text
    assert 'tidemark_table_files{table="speed.partials"}' in text


def test_c3_what_a_paused_application_leaves_unread_rings_until_it_goes_on(platform: Platform, tmp_path: Path) -> None:
    """The command judges lag from outside, by the age of what is unread."""
    strict = platform.environment | {"TIDEMARK_LAG_ALARM_SECONDS": "0"}
    command = [ROOT / "tidemark", "alarms", "--json"]

    def lags() -> tuple[int, bool]:
        done = subprocess.run(command, env=strict, capture_output=True, text=True, check=False)
        return done.returncode, any(alarm["name"] == "lag: sentence_posted" for alarm in json.loads(done.stdout))

    event = json.loads((ROOT / "schemas/events/sentence_posted.v1.json").read_text())["examples"][0]
    file = tmp_path / "values"
    file.write_text(json.dumps({**event, "event_id": str(uuid.uuid4())}) + "\n")
    paused = platform.processes("speed")
    for process in paused:
        process.suspend()
    try:
        platform.tidemark("send", "sentence_posted", "--file", str(file))
        assert lags() in ((ALARM_RAISED, True), (SPEED_SILENT, True))
    finally:
        for process in paused:
            process.resume()
    await_true(lambda: not lags()[1], 60, "the lag rings on")


def test_all_state_is_private(platform: Platform) -> None:
    open_files = [
        file
        for file in (platform.settings.secrets_file, *platform.settings.airflow_dir.glob("*.cfg"))
        if file.stat().st_mode & 0o077
    ]
    assert open_files == []
    assert platform.settings.home.stat().st_mode & 0o077 == 0
