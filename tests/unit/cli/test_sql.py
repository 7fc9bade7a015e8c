"""`tidemark sql`: what the read server says, for people and programs; it loads little."""

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.client import Door, DoorError
from spark_jobs.settings import settings

SAID = {
    "columns": [
        {"name": "store", "type": "BIGINT"},
        {"name": "share", "type": "DOUBLE"},
        {"name": "pages", "type": "ARRAY<STRING>"},
    ],
    "rows": [[3, Decimal("0.5"), ["/ä", "/b"]], [None, None, None]],
}

TWICE = {"columns": [{"name": "a", "type": "BIGINT"}, {"name": "a", "type": "STRING"}], "rows": [[1, "x"]]}


@pytest.fixture
def door(with_passwords: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What it was asked."""
    asked: list[tuple[Any, ...]] = []

    def lists(self: Door, *question: Any) -> Any:
        asked.append(question)
        if question[0] == "wrong":
            raise DoorError("not understood\x1b[31m", "refused")
        return TWICE if question[0] == "twice" else SAID

    monkeypatch.setattr(Door, "lists", lists)
    return asked


def tidemark(*words: str, stdin: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["sql", *words], input=stdin)
    return done.exit_code, done.output


def test_rows_come_as_json_csv_and_a_table(door: list[tuple[Any, ...]]) -> None:
    code, said = tidemark("SELECT 1", "--format", "json")
    assert code == 0 and json.loads(said)[0] == {"store": 3, "share": 0.5, "pages": '["/ä", "/b"]'}
    csv = 'store,share,pages\n3,0.5,"[""/ä"", ""/b""]"\n,,\n'
    assert tidemark("-", "--format", "csv", "--schema", "marts", stdin="SELECT 2") == (0, csv)
    assert "2 rows" in tidemark("SELECT 3", "--as-of", "2026-03-01T12:00:00+02:00")[1]
    assert door == [
        ("SELECT 1", "serving", None),
        ("SELECT 2", "marts", None),
        ("SELECT 3", "serving", "2026-03-01T10:00:00+00:00"),
    ]


def test_columns_of_one_name_keep_their_values(door: list[tuple[Any, ...]]) -> None:
    assert tidemark("twice", "--format", "csv") == (0, "a,a\n1,x\n")
    hint = "give each a name of its own by AS, or ask for CSV"
    assert tidemark("twice", "--format", "json") == (1, f"tidemark: more than one column is called a: {hint}\n")


def test_a_refusal_is_one_line_and_a_wrong_moment_is_wrong_usage(door: list[tuple[Any, ...]]) -> None:
    assert tidemark("wrong") == (1, "tidemark: not understood\\x1b[31m\n")
    assert "neither an ISO 8601 time nor the number of a publication" in tidemark("SELECT 1", "--as-of", "soon")[1]


def test_a_server_that_does_not_answer_is_said_in_one_line(
    with_passwords: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_QUERY_PORT", "1")
    settings.cache_clear()
    code, said = tidemark("SELECT 1")
    assert code == 1 and said.startswith("tidemark: the read server at 127.0.0.1:1 does not answer")
    assert len(said.splitlines()) == 1


def test_it_loads_neither_tables_nor_the_ledger() -> None:
    heavy = {"pyarrow", "duckdb", "sqlalchemy", "sqlglot", "deltalake", "rich", "fastapi", "pyhive"}
    code = f"import sys, spark_jobs.cli.sql; sys.exit(', '.join({heavy} & {{*sys.modules}}) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
