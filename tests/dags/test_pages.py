"""The pages inside Airflow: only for people whom Airflow has let in, and nothing but the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tidemark_pages
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.utils.db import initdb
from fastapi import FastAPI
from fastapi.testclient import TestClient

READER = SimpleAuthManagerUser(username="reader", role="VIEWER")
STRANGER = SimpleAuthManagerUser(username="stranger", role=None)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The plugin below a root app, as Airflow mounts it."""
    initdb()
    root = FastAPI()
    init_auth_manager(root)
    (mounted,) = tidemark_pages.TidemarkPages.fastapi_apps
    root.mount(mounted["url_prefix"], mounted["app"])
    with TestClient(root, follow_redirects=False) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def pages() -> None:
    home = tidemark_pages.HOME
    docs = home / "data_docs"
    (docs / "static").mkdir(parents=True)
    (docs / "index.html").write_text("the index")
    (docs / "validations").mkdir()
    (docs / "validations/one.html").write_text("one")
    (docs / "static/style.css").write_text("body {}")
    (docs / "static/rows.html").write_text("rows")
    (home / "secrets.json").write_text("secret")
    (docs / "link.json").symlink_to(home / "secrets.json")
    (docs / "static/link.css").symlink_to(home / "secrets.json")


def login(client: TestClient, user: SimpleAuthManagerUser = READER) -> dict[str, str]:
    from airflow.api_fastapi.app import get_auth_manager

    return {"Authorization": f"Bearer {get_auth_manager().generate_jwt(user)}"}


PAGES = ["/tidemark/docs/", "/tidemark/docs/index.html", "/tidemark/docs/validations/one.html", "/tidemark/models/"]


@pytest.mark.parametrize("path", [*PAGES, "/tidemark/docs/no-such-page", "/tidemark/docs/link.json"])
def test_anonymous_calls_are_refused(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("path", PAGES)
def test_a_forged_token_is_refused(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"Authorization": "Bearer e30.e30.e30"}).status_code == 403


def test_a_user_without_a_role_is_refused(client: TestClient) -> None:
    assert client.get("/tidemark/docs/", headers=login(client, STRANGER)).status_code == 403


def test_a_browser_is_sent_to_the_login_and_back(client: TestClient) -> None:
    answer = client.get("/tidemark/docs/index.html", headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/auth/login?next=/tidemark/docs/index.html")


def test_a_reader_sees_the_pages_in_a_sandbox(client: TestClient) -> None:
    answer = client.get("/tidemark/docs/", headers=login(client))
    assert (answer.status_code, answer.text) == (200, "the index")
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts ")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    assert client.get("/tidemark/docs/validations/one.html", headers=login(client)).text == "one"


@pytest.mark.parametrize(
    "path",
    ["../secrets.json", "%2e%2e/secrets.json", "..%2fsecrets.json", "static/..%2f..%2fsecrets.json", "/etc/passwd",
     "%2fetc%2fpasswd", "link.json", "static/link.css", "static/%2e%2e/%2e%2e/secrets.json", "..%5csecrets.json"],
)  # fmt: skip
def test_nothing_outside_the_folder_is_served(client: TestClient, path: str) -> None:
    answer = client.get(f"/tidemark/docs/{path}", headers=login(client))
    assert answer.status_code == 404 and "secret" not in answer.text


def test_only_style_sheets_fonts_and_pictures_are_open(client: TestClient) -> None:
    assert client.get("/tidemark/docs/static/style.css").text == "body {}"
    assert client.get("/tidemark/docs/static/rows.html").status_code == 404
    assert client.get("/tidemark/docs/static/link.css").status_code == 404


def test_a_page_that_is_not_written_yet_names_its_dag(client: TestClient) -> None:
    answer = client.get("/tidemark/models/", headers=login(client))
    assert (answer.status_code, answer.json()["detail"]) == (404, "nothing here yet: the DAG marts writes this page")


def test_the_folders_are_those_of_the_settings() -> None:
    assert {page: folder for page, (folder, _) in tidemark_pages.PAGES.items()} == {
        "docs": Path(tidemark_pages.HOME) / "data_docs",
        "models": Path(tidemark_pages.HOME) / "dbt/docs",
    }
