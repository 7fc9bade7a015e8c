"""The door as its clients have it: logins, roles, formats, metadata, limits; a runaway statement takes nobody along."""

import base64
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from spark_jobs.client import DoorError, connect
from spark_jobs.ledger.store import Store
from spark_jobs.query_server import users
from spark_jobs.settings import settings
from tests.certificates import DAY, Authority
from tests.local_platform import Platform
from tests.platform import await_true
from tests.read_server import served

RUNAWAY = "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n > 0) SELECT count(*) AS n FROM a"


@pytest.fixture
def url(
    request: pytest.FixtureRequest, town: Platform, on_a_port: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A server over the town's tables, in a thread; its workers are processes."""
    monkeypatch.setenv("TIDEMARK_QUERY_SECONDS", getattr(request, "param", "300"))
    monkeypatch.setenv("TIDEMARK_QUERY_ROWS", "10")
    with served() as at:
        yield at


def status(url: str, login: str = "", method: str = "GET", body: bytes | None = None) -> tuple[int, Any]:
    headers = {"Authorization": login, "Content-Type": "application/json"} if login else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_the_door_answers_its_users_and_nobody_else(url: str, town: Platform) -> None:
    with connect() as door:
        answer = door.sql("SELECT * FROM orders_by_day ORDER BY store_id, day")
        assert answer.arrow().num_rows > 0 and pl.DataFrame(answer).equals(pl.from_arrow(answer.arrow()))
        assert len(answer.pandas()) == answer.arrow().num_rows
        assert (answer.meta["lsn"], answer.meta["cut"], answer.meta["publication"]) == (3, 2, 0)
        values = door.values("SELECT store_id, orders / 3 AS third FROM orders_by_day LIMIT 1")
        assert [one["type"] for one in values["columns"]] == ["BIGINT", "DOUBLE"]
        assert values["meta"]["read"][0]["table"] == "serving.orders_by_day"
        assert door.values("SELECT ? AS a, ? AS b", values=["x", 2])["rows"] == [{"a": "x", "b": 2}]
        twice = "SELECT 1 AS a, 'x' AS a, 2 AS b"
        assert door.lists(twice)["rows"] == [[1, "x", 2]]
        assert [column["name"] for column in door.lists(twice)["columns"]] == ["a", "a", "b"]
        with pytest.raises(DoorError, match="more than one column is called a: give each a name of its own"):
            door.values(twice)
        with pytest.raises(DoorError, match="store_id has none"):
            door.key("orders_by_day", store_id=None)
        first = answer.arrow().to_pylist()[0]
        assert door.key("orders_by_day", store_id=first["store_id"], day=first["day"]).arrow().to_pylist() == [first]
        assert {"orders_by_day", "sessions", "top_sellers"} <= {view["view"] for view in door.views()}
    _logins(url)
    _headers_and_csv(url)


def test_a_client_that_was_idle_is_answered(url: str) -> None:
    """The server closes a connection that nobody uses for five seconds."""
    with connect() as door:
        assert door.values("SELECT 1 AS one")["rows"] == [{"one": 1}]
        time.sleep(7)
        assert door.values("SELECT 2 AS two")["rows"] == [{"two": 2}]


def _logins(url: str) -> None:
    asked = json.dumps({"statement": "SELECT 1 AS one"}).encode()
    assert status(f"{url}/health") == (200, {"status": "ok"})
    for login in ("", "Basic x", "Bearer nobody.secret", basic("tidemark", "wrong"), basic("an-analyst", "wrong")):
        for path in ("/views", "/statements", "/docs", "/openapi.json", "/nothing"):
            assert status(url + path, login)[0] == 401, (login, path)
        assert status(f"{url}/sql", login, "POST", asked)[0] == 401
    analyst, service = basic("an-analyst", "secret"), "Bearer an-service.secret"
    assert status(f"{url}/sql", analyst, "POST", asked)[1]["rows"] == [{"one": 1}]
    assert status(f"{url}/views/orders_by_day?store_id=1", analyst)[0] == 403
    assert status(f"{url}/views/orders_by_day?store_id=1", service)[0] == 200
    assert (
        status(f"{url}/statements", service)[1]["error"]["reason"] == "an-service is service; this needs one of: admin"
    )
    users.remove(settings().query_users, "an-analyst")
    assert status(f"{url}/sql", analyst, "POST", asked)[0] == 401, "from the next request on"
    long = json.dumps({"statement": "SELECT 1 " + " " * (1 << 20)}).encode()
    assert status(f"{url}/sql", service, "POST", long)[0] == 413


def _headers_and_csv(url: str) -> None:
    asked = {"statement": "SELECT store_id, day FROM orders_by_day LIMIT 1", "format": "csv"}
    headers = {"Authorization": "Bearer an-service.secret", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/sql", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.read().startswith(b"store_id,day\n")
        told = {name: answer.headers[f"Tidemark-{name}"] for name in ("Lsn", "Cut", "Publication", "Rows")}
        assert told == {"Lsn": "3", "Cut": "2", "Publication": "0", "Rows": "1"}
        assert datetime.fromisoformat(answer.headers["Tidemark-As-Of"]).tzinfo is not None


@pytest.mark.parametrize("url", ["1"], indirect=True)
def test_a_statement_that_takes_too_long_is_ended_and_takes_nobody_along(url: str) -> None:
    for _ in range(3):
        assert (
            _refused(RUNAWAY) == "the statement took longer than 1 s and was ended: TIDEMARK_QUERY_SECONDS is the limit"
        )
    assert connect().values("SELECT 1 AS one")["rows"] == [{"one": 1}], "by a new worker"


def test_an_administrator_sees_what_is_running_and_ends_it(url: str) -> None:
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(_refused(RUNAWAY)))
    thread.start()
    admin = basic("tidemark", settings().password("query"))
    running = f"{url}/statements"
    await_true(lambda: bool(status(running, admin)[1]), 10, "it is not running")
    [number] = status(running, admin)[1]
    assert connect().values("SELECT 1 AS one")["rows"] == [{"one": 1}], "others are answered meanwhile"
    assert status(f"{running}/{number}", admin, "DELETE")[1] == {"ended": int(number)}
    thread.join()
    assert ended == ["an administrator has ended the statement"]
    assert status(f"{running}/{number}", admin, "DELETE")[0] == 404
    assert _refused("SELECT w.word FROM word_count AS w, word_count AS v").startswith("more than 10 rows")


def _refused(statement: str) -> str:
    with pytest.raises(DoorError) as refused:
        connect().sql(statement)
    return str(refused.value)


@pytest.mark.parametrize("lasts", [DAY, -DAY], ids=["valid", "expired"])
def test_c1_with_a_certificate_the_door_speaks_tls_to_who_trusts_it(
    lasts: timedelta, store: Store, on_a_port: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    certificate, key, _ = authority.issue("query", lasts)
    monkeypatch.setenv("TIDEMARK_QUERY_CERTIFICATE_FILE", str(certificate))
    monkeypatch.setenv("TIDEMARK_QUERY_KEY_FILE", str(key))
    with served() as url:
        assert url.startswith("https://")
        with connect() as stranger, pytest.raises(DoorError, match=r"unable to get local issuer certificate|expired"):
            stranger.sql("SELECT 1 AS one")
        with connect(ca_file=str(authority.ca)) as door:
            if lasts > DAY * 0:
                assert door.sql("SELECT 1 AS one").arrow().to_pylist() == [{"one": 1}]
            else:
                with pytest.raises(DoorError, match="certificate has expired"):
                    door.sql("SELECT 1 AS one")
        with pytest.raises((OSError, HTTPException)):
            urllib.request.urlopen(url.replace("https", "http") + "/health", timeout=10)
