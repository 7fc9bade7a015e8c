"""Who may ask: a private file of hashes, roles by name, and what is wrong is named."""

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.query_server import users
from spark_jobs.query_server.logins import Logins
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.users import User, UsersError
from spark_jobs.settings import settings


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def file(platform_home: Path, with_passwords: None) -> Path:
    return settings().query_users


def test_the_file_is_private_and_has_no_password(file: Path) -> None:
    password = users.add(file, "ann", "service")
    assert len(password) >= 32 and password not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert Logins(settings()).user(basic("ann", password)) == User("ann", "service")
    assert Logins(settings()).user(f"Bearer ann.{password}") == User("ann", "service")


def test_the_user_of_the_platform_is_its_administrator(file: Path) -> None:
    password = settings().password("query")
    assert Logins(settings()).user(basic("tidemark", password)) == User("tidemark", "admin")
    for login in (basic("tidemark", "wrong"), basic("", password), basic("ann", password), "Basic ?", "Bearer x", None):
        with pytest.raises(Refusal) as refused:
            Logins(settings()).user(login)
        assert refused.value.status == 401


def test_a_login_that_was_right_is_remembered_until_the_file_changes(file: Path) -> None:
    logins, login = Logins(settings()), basic("ann", users.add(file, "ann", "analyst"))
    assert logins.remembered(login) is None
    assert logins.user(login) == logins.remembered(login) == User("ann", "analyst")
    users.add(file, "bob", "analyst")
    assert logins.remembered(login) is None
    assert logins.user(login) == User("ann", "analyst")
    users.remove(file, "ann")
    assert logins.remembered(login) is None
    with pytest.raises(Refusal, match="this login is wrong"):
        logins.user(login)


def test_c1_a_login_that_is_checked_while_its_user_is_removed_is_not_remembered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check takes a good part of a second; meanwhile the file changes, and somebody else's request sees it."""
    logins, login = Logins(settings()), basic("eve", users.add(file, "eve", "admin"))
    users.add(file, "bob", "analyst")

    def hashed(password: str, salt: bytes) -> bytes:
        shown = users.hashed(password, salt)
        users.remove(file, "eve")
        assert logins.remembered(basic("bob", "?")) is None
        return shown

    monkeypatch.setattr("spark_jobs.query_server.logins.hashed", hashed)
    logins.user(login)
    assert logins.remembered(login) is None
    monkeypatch.undo()
    with pytest.raises(Refusal, match="this login is wrong"):
        logins.user(login)


def test_a_role_has_its_rights_and_names_who_has_more() -> None:
    User("ann", "analyst").refuse_without("select")
    User("ann", "admin").refuse_without("statements")
    with pytest.raises(Refusal, match="ann is analyst; this needs one of: service, admin"):
        User("ann", "analyst").refuse_without("key")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is no file of users: JSONDecodeError"),
        ("[]", "is no file of users: AttributeError"),
        ('{"ann": {"role": "analyst"}}', "is no file of users: KeyError 'salt'"),
        (
            '{"ann": {"role": "god", "salt": "00", "scrypt": "00"}}',
            "ann has the role 'god'; there are analyst",
        ),
    ],
)
def test_a_wrong_file_lets_nobody_in_and_is_named(file: Path, content: str, why: str) -> None:
    file.touch(mode=0o600)
    file.write_text(content)
    with pytest.raises(UsersError, match=why):
        users.known(file)
    with pytest.raises(Refusal, match="nobody can log in"):
        Logins(settings()).user(basic("ann", "x"))


def test_a_file_that_others_can_read_is_refused(file: Path) -> None:
    users.add(file, "ann", "analyst")
    file.chmod(0o644)
    with pytest.raises(UsersError, match="can be read by others: chmod 600"):
        users.known(file)


def tidemark(*words: str, stdin: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(main, ["users", *words], input=stdin)
    return done.exit_code, done.output


def test_the_command_adds_lists_and_removes(file: Path) -> None:
    code, password = tidemark("add", "ann", "--role", "service")
    assert code == 0 and Logins(settings()).user(basic("ann", password.strip())).role == "service"
    assert tidemark("add", "bob", "--password", stdin="his own\n") == (0, "bob is analyst\n")
    assert Logins(settings()).user(basic("bob", "his own")).name == "bob"
    assert [line.split() for line in tidemark("list")[1].splitlines()] == [["ann", "service"], ["bob", "analyst"]]
    assert tidemark("remove", "ann") == (0, "removed ann\n")
    assert json.loads(file.read_text()).keys() == {"bob"}
    assert "no user is called ann; there are bob" in tidemark("remove", "ann")[1]
    assert "'Ann' cannot name a user" in tidemark("add", "Ann")[1]
    assert tidemark("add", "eve", "--password", stdin="\n")[0] == 2
