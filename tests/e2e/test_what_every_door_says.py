"""I20: every door gives the same rows, each asked as docs/querying.md says.

A pin is the moment, and has built and speed parts; the file runs after those that publish, and publishes if none has.
"""

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.registry.views import project_views
from spark_jobs.serving.catalogue import is_of_the_moment
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import ROOT, settings
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.timeout(1200)]

VIEWS = (
    "orders_by_day",
    "orders_by_hour",
    "bus_latest",
    "sessions",
    "trades_by_colour",
    "top_sellers",
    "items_sold_last_hour",
    "lift_rides_sliding",
    "payments_scored",
    "payments_flagged",
)
"""Some of each kind: by days, by times, the latest value, a sequence, chained, ranked, trailing, hopping, by row."""
PIN = "pin_monday"
MARTS = "doors"
TOLERANCE = 1e-9
Rows = list[list[str | None]]


@pytest.fixture(scope="module")
def files(platform: Platform) -> Iterator[LocalAnswers]:
    """The pin's answers from the files, by the page's own program, in an environment that means the platform."""
    publish_once(platform)
    newest = platform.heartbeat()["lsn"]
    platform.tidemark("generate", "--events", "2000", "--seed", "20")
    await_true(lambda: platform.heartbeat()["lag"] == 0 and platform.heartbeat()["lsn"] > newest, 180, "nothing lands")
    platform.tidemark("pin", "create", "monday")
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in platform.environment.items():
                patch.setenv(name, value)
            settings.cache_clear()
            names: dict[str, Any] = {}
            exec(said("Files", platform), names)
            answers: LocalAnswers = names["files"]
            assert answers.head > max(source.cut for source in answers.sources.values()) > 0, "both parts are in it"
            yield answers
    finally:
        settings.cache_clear()
        platform.tidemark("pin", "drop", "monday")


def publish_once(platform: Platform) -> None:
    publications = json.loads(platform.tidemark("batch", "status", "--json"))["publications"]
    if [one["kind"] for one in publications] == ["initial"]:
        platform.tidemark("generate", "--events", "20000", "--seed", "7")
        await_true(lambda: platform.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
        for step in BATCH_STEPS:
            platform.tidemark("batch", step, "--run-id", "doors")


def said(heading: str, platform: Platform, questions: Path = Path("questions.sql")) -> str:
    """The page's example under the heading, of this platform."""
    page = (ROOT / "docs/querying.md").read_text()
    [example] = re.findall(rf"^## {heading}\n```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    here = {".tidemark/": f"{platform.settings.home}/", "19000": str(platform.settings.thrift_port)}
    here["19081"] = str(platform.settings.query_flight_port)
    for text, this in (here | {"questions.sql": str(questions)}).items():
        example = example.replace(text, this)
    return str(example)


def run(command: str, platform: Platform, **others: str) -> str:
    """What a command of the page prints, in a shell as a user has it."""
    path = f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    environment = platform.environment | {"PATH": path} | others
    shell = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(shell, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def question(name: str, schema: str = PIN) -> str:
    columns = shape_of(project_views().served[name], served=True).columns
    return f"SELECT {', '.join(columns)} FROM {schema}.{name}"


def parted(lines: list[list[str]]) -> dict[str, Rows]:
    """View -> its rows, of answers printed one after another, each below the names of its columns."""
    heads = {tuple(shape_of(project_views().served[name], served=True).columns): name for name in VIEWS}
    answers: dict[str, Rows] = {}
    rows: Rows = []
    for line in filter(None, lines):
        if name := heads.get(tuple(line)):
            rows = answers[name] = []
        else:
            rows.append([None if text == "NULL" else text for text in line])
    return answers


def by_pyhive(platform: Platform, schema: str = PIN) -> dict[str, Rows]:
    names: dict[str, Any] = {}
    exec(said("PyHive", platform), names)
    with names["connection"].cursor() as cursor:
        answers = {}
        for name in VIEWS:
            cursor.execute(question(name, schema))
            answers[name] = [[None if value is None else str(value) for value in row] for row in cursor.fetchall()]
    names["connection"].close()
    return answers


def by_beeline(platform: Platform, tmp_path: Path) -> dict[str, Rows]:
    """Before an answer stands beeline's prompt and the question: without a terminal both are called null."""
    printed = run(said("beeline", platform, questions(tmp_path)), platform)
    return parted([*csv.reader(re.sub(r"^null(\s+null)*", "", printed, flags=re.MULTILINE).splitlines())])


def by_spark_sql(platform: Platform, tmp_path: Path) -> dict[str, Rows]:
    printed = run(said("spark-sql", platform, questions(tmp_path)), platform)
    return parted([line.split("\t") for line in printed.splitlines()])


def by_dbt(platform: Platform, tmp_path: Path) -> dict[str, pa.Table]:
    """A model for each view; what it made is read by Polars from its files."""
    (tmp_path / "models").mkdir()
    for file in ("dbt_project.yml", "models/sources.yml"):
        (tmp_path / file).write_text((ROOT / "dbt" / file).read_text())
    for name in VIEWS:
        config = "{{ config(materialized='table', file_format='delta') }}\n"
        model = f"{config}select * from {{{{ source('serving', '{name}') }}}}\n"
        (tmp_path / f"models/its_{name}.sql").write_text(model)
    try:
        run(said("dbt", platform), platform, TIDEMARK_DBT_FOLDER=str(tmp_path), TIDEMARK_MARTS_SCHEMA=MARTS)
        return {name: pl.read_delta(platform.delta(f"{MARTS}.its_{name}")).to_arrow() for name in VIEWS}
    finally:
        platform.sql(f"DROP SCHEMA IF EXISTS {MARTS} CASCADE")


def questions(folder: Path) -> Path:
    file = folder / "questions.sql"
    file.write_text("".join(f"{question(name)};\n" for name in VIEWS))
    return file


def assert_same(answers: Mapping[str, Rows | pa.Table], files: LocalAnswers) -> None:
    """Every row of every view; texts are taken for values of the files' types."""
    assert set(answers) == set(VIEWS)
    for name, rows in answers.items():
        assert assert_same_rows(name, rows, files), f"{name} has no rows"


def assert_same_rows(name: str, rows: Rows | pa.Table, files: LocalAnswers) -> int:
    """How many were compared."""
    view = project_views().served[name]
    shape, expected = shape_of(view, served=True, tolerance=TOLERANCE), files.answer(view)
    if isinstance(rows, list):
        columns = [[row[n] for row in rows] for n in range(len(shape.columns))]
        rows = pa.table([pa.array(column, pa.string()) for column in columns], shape.columns)
    files.con.register("asked", rows)
    compared = compare(files.con, expected, "FROM asked", shape)
    assert not compared.differing, (name, compared.first(("files", "door")))
    return compared.rows


@pytest.mark.parametrize("schema", [PIN, pytest.param("serving", marks=pytest.mark.slow)])
def test_i20_pyhive_gives_the_rows_of_the_files(platform: Platform, files: LocalAnswers, schema: str) -> None:
    answers = by_pyhive(platform, schema)
    if schema == "serving":  # the log is quiet, but a trailing window goes on
        answers["items_sold_last_hour"] = by_pyhive(platform)["items_sold_last_hour"]
    assert_same(answers, files)


@pytest.mark.parametrize("schema", [PIN, "serving"])
def test_i20_the_read_server_gives_the_rows_of_the_files_for_every_view(
    platform: Platform, files: LocalAnswers, schema: str
) -> None:
    names: dict[str, Any] = {}
    exec(said("Python", platform), names)
    there = {view["view"]: project_views().served[view["view"]] for view in names["door"].views(schema)}
    assert there.keys() >= set(VIEWS)
    for name, view in there.items():
        if schema == PIN or not is_of_the_moment(view):  # the log is quiet, but the clock goes on
            answer = names["door"].sql(f"SELECT * FROM {name}", schema)
            assert_same_rows(name, answer.arrow(), files)
            assert answer.meta["lsn"] == files.head
    names["door"].close()


def test_i20_flight_sql_gives_the_rows_of_the_files(platform: Platform, files: LocalAnswers) -> None:
    names: dict[str, Any] = {}
    exec(said("Flight SQL", platform), names)
    with names["connection"] as connection, connection.cursor() as cursor:
        answers = {}
        for name in VIEWS:
            cursor.execute(f"SELECT * FROM {PIN}.{name}")
            answers[name] = cursor.fetch_arrow_table()
    assert_same(answers, files)


Door = Callable[[Platform, Path], Mapping[str, Rows | pa.Table]]


@pytest.mark.parametrize(
    "door",
    [pytest.param(door, marks=pytest.mark.slow) for door in (by_beeline, by_spark_sql, by_dbt)],
)
def test_i20_other_doors_give_the_rows_of_the_files(
    platform: Platform, files: LocalAnswers, door: Door, tmp_path: Path
) -> None:
    """Those that start a program of their own for a dozen seconds of CPU time are in `make test-slow`."""
    assert_same(door(platform, tmp_path), files)
