"""`tidemark demo`: the whole platform on the project's records, from Kafka to published, verified answers.

up -> records -> merged answers before any batch -> batch_layer through Airflow -> the same answers after publication
-> agreement -> verify -> marts, left to themselves. Each step says what it does and how long it took; the platform
stays up. What is sent and asked is the town's (`sample.demo`) or, of another project, what its folder has
(`cli.project`). Each of the two is a script: a module with FEEDING, MORE, LATER, EXAMPLES, feed, feed_more, questions.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import count
from types import ModuleType

import click
from rich.console import Console
from rich.markup import escape

from infra.embedded.airflow import ADMIN
from infra.embedded.airflow_api import AirflowApi, AirflowError
from spark_jobs.cli.sql import read
from spark_jobs.client import DoorError
from spark_jobs.ledger import store as ledger
from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.registry.views import project_views
from spark_jobs.serving.formatting import Answer, plain, printable, text
from spark_jobs.settings import Settings
from spark_jobs.settings import settings as current
from spark_jobs.speed.status import health

PATIENCE_SECONDS = 600
STEPS = (*BATCH_STEPS, "train")


class DemoFailed(Exception):
    """A step did not end well; the message says which and where to look."""


@click.command()
def demo() -> None:
    """Start everything, feed it, show merged answers, run the batch layer, verify. Exit code 1 where a step fails."""
    script = import_module("spark_jobs.sample.demo" if current().is_town else "spark_jobs.cli.project")
    try:
        play(current(), script, Console())
    except (DemoFailed, AirflowError, DoorError) as error:
        click.echo(f"tidemark demo: {error}", err=True)
        sys.exit(1)


def play(settings: Settings, script: ModuleType, console: Console) -> None:
    """Play the demo; raises DemoFailed. May be run again: known records are not sent twice."""
    steps, questions = _numbered(console), script.questions()
    with steps("Start the platform (Kafka, metastore, Thrift, speed layer, Airflow)"):
        _tidemark("up")
    with steps(script.FEEDING):
        script.feed(_tidemark)
    with steps("Wait until the speed layer has seen everything"):
        _await_no_lag(console)
    published = ledger.open().current_publication()
    is_built = published is not None and published.cut > 0
    console.rule("Merged answers" if is_built else "Merged answers, before any batch of these events ran")
    before = {question: _ask(console, question, statement) for question, statement in questions.items()}
    api = AirflowApi(settings)
    with _held_back(api, "marts"):
        with steps("Run the DAG batch_layer through Airflow's REST API"):
            run_id = api.trigger("batch_layer")
            console.print(f"   {settings.airflow_page}/dags/batch_layer/runs/{run_id}", style="dim")
            _await_run(api, run_id, console, task="publish")  # it then goes on to train
        console.rule("The same questions after publication")
        _compare(console, questions, before)
        with steps(script.MORE or "Wait until the run has ended"):
            _await_run(api, run_id, console)
            script.feed_more(_tidemark)
            _await_no_lag(console)
            for question, statement in script.LATER.items():
                _ask(console, question, statement)
        with steps("A row of every other view"):
            _others(console, [*questions.values(), *script.LATER.values()])
        with steps("Agreement of batch and speed"):
            _tidemark("agreement")
        with steps("Verify the invariants"):
            _tidemark("verify")
    api.trigger("marts")
    _farewell(settings, script, console)


@contextmanager
def _held_back(api: AirflowApi, dag_id: str) -> Iterator[None]:
    """A publication begins the DAG at once, which would have the cores that the answers are waiting for."""
    api.pause(dag_id, True)
    try:
        yield
    finally:
        api.pause(dag_id, False)


def _numbered(console: Console) -> Callable[[str], AbstractContextManager[None]]:
    """Steps with their numbers and seconds; plain lines, so that a log reads as well as a terminal."""
    numbers = count(1)

    @contextmanager
    def step(title: str) -> Iterator[None]:
        console.print(f"[bold]{next(numbers)}. {title}[/bold]")
        begun = time.monotonic()
        yield
        console.print(f"   done in {time.monotonic() - begun:.0f} s", style="dim")

    return step


def _tidemark(*arguments: str) -> None:
    """One `tidemark` command in a process of its own, its output shown."""
    ended = subprocess.run([sys.argv[0], *arguments], check=False)
    if ended.returncode:
        raise DemoFailed(f"`tidemark {' '.join(arguments)}` ended with exit code {ended.returncode}")


def _waiting() -> Iterator[float]:
    """The seconds waited so far, once a second, until patience ends."""
    begun = time.monotonic()
    while (seconds := time.monotonic() - begun) < PATIENCE_SECONDS:
        yield seconds
        time.sleep(1)


def _await_no_lag(console: Console) -> None:
    """The heartbeat says lag 0 in a beat that began after the last event was sent."""
    shown: int | None = None
    store = ledger.open()
    beat_at = store.heartbeat("speed")
    for seconds in _waiting():
        state, beat = health(store), store.heartbeat("speed")
        is_newer = beat is not None and (beat_at is None or beat.at > beat_at.at)
        if is_newer and state.get("lag") == 0 and seconds > 3:
            return
        if state.get("lsn") != shown:
            shown = state.get("lsn")
            console.print(f"   lsn {shown}, {state.get('lag') or '?'} records to go", style="dim")
    raise DemoFailed("the speed layer did not catch up; see `./tidemark speed status` and `./tidemark logs speed`")


def _ask(console: Console, question: str, statement: str) -> Answer:
    begun = time.monotonic()
    answer = read(statement)
    console.print(f"[bold]{question}[/bold]  ({time.monotonic() - begun:.2f} s)\n  {statement}")
    console.print(text(answer, "table"), end="", highlight=False)
    return answer


def _others(console: Console, statements: list[str]) -> None:
    asked = " ".join(statements)
    for name in sorted(name for name in project_views().served if not re.search(rf"\b{name}\b", asked)):
        row = next(iter(read(f"SELECT * FROM {name} LIMIT 1").dicts()), {})
        values = {column: "NULL" if value is None else plain(value) for column, value in row.items()}
        shown = ", ".join(f"{column}={value}" for column, value in values.items()) or "no row at this moment"
        console.print(f"   [bold]{name}[/bold]  {escape(printable(shown))}", highlight=False, soft_wrap=True)


def _compare(console: Console, questions: Mapping[str, str], before: Mapping[str, Answer]) -> None:
    different = [question for question in questions if read(questions[question]).rows != before[question].rows]
    if different:
        raise DemoFailed(f"answers changed by publication: {different}")
    console.print(f"All {len(before)} answers are the same, now from batch + speed.", style="bold green")


def _await_run(api: AirflowApi, run_id: str, console: Console, task: str | None = None) -> None:
    """Until the run, or one task of it, has ended well."""
    shown = ""
    for seconds in _waiting():
        state, tasks = api.run_state("batch_layer", run_id)
        line = "  ".join(f"{name}: {tasks.get(name) or 'waits'}" for name in STEPS)
        if line != shown:
            shown = line
            console.print(f"   {seconds:4.0f} s  {line}", style="dim", highlight=False)
        if state == "success" or (task and tasks.get(task) == "success"):
            return
        if state == "failed":
            raise DemoFailed("the DAG run failed; open the link above, the red task's log says why")
    raise DemoFailed(f"the DAG run did not end within {PATIENCE_SECONDS} s")


def _farewell(settings: Settings, script: ModuleType, console: Console) -> None:
    console.rule("The platform is running")
    secrets = settings.secrets_file
    console.print(
        f"""Airflow   {settings.airflow_page}   user {ADMIN}, password: "airflow_admin_password" in {secrets}
Marts     {settings.airflow_page}/dags/marts   (dbt builds them now)
HTTP      {settings.query_url}/docs   user {settings.query_user}, password: "query_password" there
JDBC      {settings.thrift}:{settings.thrift_port}
{script.EXAMPLES}
State     ./tidemark status, ./tidemark speed status
Stop      ./tidemark down        (its state stays; ./tidemark reset deletes it)""",
        highlight=False,
        markup=False,
    )
