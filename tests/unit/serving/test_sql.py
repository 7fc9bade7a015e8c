"""Rows keep their exact values in every format, and nothing in them can write on the terminal."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.serving.formatting import Answer, printable, text
from spark_jobs.serving.sql import message
from spark_jobs.settings import settings

ANSWER = Answer(
    ("n", "price", "at", "word", "raw", "ratio", "flag"),
    ("BIGINT_TYPE", "DECIMAL_TYPE", "TIMESTAMP_TYPE", "STRING_TYPE", "BINARY_TYPE", "DOUBLE_TYPE", "BOOLEAN_TYPE"),
    [
        (2**62, Decimal("12345678901234567890.10"), datetime(2026, 3, 1, 12, 0, 0, 5000, UTC), 'a "b", c', b"\0\xff",
         float("nan"), True),
        (None, None, None, "\x1b[31mred\n=1+1", None, 0.1, False),
    ],
)  # fmt: skip


def test_json_keeps_integers_decimals_and_instants_exact() -> None:
    rows = json.loads(text(ANSWER, "json"), parse_float=Decimal)
    assert rows[0] == {"n": 2**62, "price": Decimal("12345678901234567890.10"), "at": "2026-03-01T12:00:00.005000Z",
                       "word": 'a "b", c', "raw": "00ff", "ratio": "nan", "flag": True}  # fmt: skip
    assert rows[1]["n"] is None and rows[1]["word"] == "\x1b[31mred\n=1+1"


def test_csv_reads_back_as_it_was() -> None:
    header, first, second = csv.reader(io.StringIO(text(ANSWER, "csv")))
    assert header == list(ANSWER.columns)
    assert first[:4] == [str(2**62), "12345678901234567890.10", "2026-03-01T12:00:00.005000Z", 'a "b", c']
    assert second == ["", "", "", "\x1b[31mred\n=1+1", "", "0.1", "false"]


def test_a_table_is_as_wide_as_it_needs_and_spells_control_characters() -> None:
    shown = text(ANSWER, "table")
    assert "12345678901234567890.10" in shown and "NULL" in shown and "2 rows" in shown
    assert "\x1b" not in shown and r"\x1b[31mred\n=1+1" in shown
    assert printable("right\u202eleft") == r"right\u202eleft"


def test_a_statement_without_rows_says_done() -> None:
    nothing = Answer((), (), [])
    assert text(nothing, "table") == "done\n"
    assert text(nothing, "csv") == "" and json.loads(text(nothing, "json")) == []


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        (
            "Error running query: [TABLE_OR_VIEW_NOT_FOUND] org.apache.spark.sql.AnalysisException: "
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope` cannot be found.\nVerify the spelling. SQLSTATE: "
            "42P01; line 1 pos 14;\n'Project [*]\n+- 'UnresolvedRelation [nope], [], false\n",
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope` cannot be found. Verify the spelling. SQLSTATE: 42P01",
        ),
        (
            "Error running query: [PARSE_SYNTAX_ERROR] org.apache.spark.sql.catalyst.parser.ParseException: \n"
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)\n\n"
            "== SQL ==\nselec 1\n^^^\n",
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)",
        ),
        ("something\n\tat org.apache.Some.method(Some.java:1)", "something"),
    ],
)
def test_an_error_is_sparks_own_words_in_one_line(raw: str, short: str) -> None:
    assert message(Exception(SimpleNamespace(status=SimpleNamespace(errorMessage=raw)))) == short


def test_a_server_that_does_not_answer_is_said_in_one_line(
    with_passwords: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_THRIFT_PORT", "1")
    settings.cache_clear()
    refused = CliRunner().invoke(main, ["sql", "select 1", "--engine", "spark"])
    assert refused.exit_code == 1
    assert "the Thrift server at 127.0.0.1:1 does not answer" in refused.output
    assert len(refused.output.strip().splitlines()) == 1
