"""A shadow platform knows nothing of ours: whatever the environment says, every part is its own."""

import socket
from pathlib import Path

import pytest

from infra.embedded import shadow as shadows
from infra.embedded.shadow import Shadow, free_ports
from spark_jobs.settings import Settings

OURS = {
    "PROFILE": "cluster",
    "SUPERVISOR": "compose",
    "HOST": "0.0.0.0",
    "ADVERTISED_HOST": "ours",
    "KAFKA_SERVERS": "ours:9092",
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "METASTORE_URI": "thrift://ours:9083",
    "THRIFT_HOST": "ours",
    "WAREHOUSE_URI": "s3://ours",
    "LEDGER_URL": "postgresql://ours",
    "OTLP_ENDPOINT": "http://ours",
    "ALARMS_WEBHOOK_FILE": "/ours",
    "HORIZON_DAYS": "3",
    "VIEWS_FOLDER": "/ours/views",
}


@pytest.fixture
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shadow:
    for name, value in (OURS | {"HOME": str(tmp_path)}).items():
        monkeypatch.setenv(f"TIDEMARK_{name}", value)
    return Shadow(Settings())


def test_no_part_of_ours_is_reached_and_answers_are_made_alike(shadow: Shadow, tmp_path: Path) -> None:
    here = shadow.settings
    assert here.home == tmp_path / "drill" and here.warehouse == str(here.home / "warehouse")
    assert here.kafka == f"127.0.0.1:{here.kafka_port}" and here.kafka_port != Settings().kafka_port
    assert (here.profile, here.supervisor, here.ledger_url, here.otlp_endpoint) == (
        "embedded",
        "supervisord",
        None,
        None,
    )
    assert (here.horizon_days, here.views_folder) == (3, Path("/ours/views"))


def test_its_processes_are_told_the_same(shadow: Shadow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = shadow.environment
    assert not [value for value in told.values() if value in ("ours", "ours:9092", "s3://ours")]
    for name in (*OURS, "HOME"):
        monkeypatch.delenv(f"TIDEMARK_{name}")
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert Settings() == shadow.settings


def test_what_an_earlier_drill_left_is_gone_before_another_begins(shadow: Shadow, tmp_path: Path) -> None:
    (shadow.settings.home / "warehouse").mkdir(parents=True)
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations/facts.order_placed.json").write_text("[]")
    shadow.prepare()
    assert [path.name for path in shadow.settings.home.iterdir()] == ["expectations"]
    shadow.remove()
    assert not shadow.settings.home.exists()


def test_no_client_is_given_a_port_that_a_server_is_about_to_bind() -> None:
    assert max(shadows.FREE) < 32_768, "Linux gives its clients these and higher ones, others 49,152 and higher"
    assert not {*shadows.FREE} & {Settings.model_fields[name].default for name in shadows.PORTS}
    ports = {*free_ports(len(shadows.PORTS))}
    assert len(ports) == len(shadows.PORTS) and ports < {*shadows.FREE}


def test_a_port_on_which_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    monkeypatch.setattr(shadows, "FREE", [taken, free])
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports(1) == [free] and free_ports(2) == [free]
    assert sorted(free_ports(2)) == sorted((taken, free))
