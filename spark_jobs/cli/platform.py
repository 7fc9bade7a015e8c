"""The commands that run the embedded platform: up, down, status, logs, restart, reset, settings."""

import json
import shlex
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console

from infra.embedded import lifecycle, report, supervisor
from infra.embedded.lifecycle import PlatformError, Progress, Report
from infra.embedded.supervisor import SupervisorError
from spark_jobs.ledger import store as ledger
from spark_jobs.settings import Settings
from spark_jobs.settings import settings as current
from spark_jobs.speed.status import NOT_SERVED, health

CONSOLE = Console(highlight=False, soft_wrap=not sys.stdout.isatty())


@contextmanager
def progress() -> Iterator[Report]:
    """Show a start or stop: a line for each part that is done, and in a terminal what is awaited.

    Failures of the platform end the command with a sentence and exit code 1.
    """
    awaited: dict[str, Progress] = {}
    spinner = CONSOLE.status("starting")  # which shows nothing where nobody looks on

    def show(step: Progress) -> None:
        if step.state in {"ready", "stopped"}:
            awaited.pop(step.part, None)
            CONSOLE.print(f"{step.part:<22} {step.state:<8} {step.seconds:5.1f} s")
        else:
            awaited[step.part] = step
        if awaited:
            spinner.update("; ".join(f"{part}: {step.said or step.state}" for part, step in awaited.items()))

    try:
        with spinner:
            yield show
    except (PlatformError, SupervisorError) as error:
        raise click.ClickException(str(error)) from error


def show_unserved() -> None:
    """Name the views that readers do not get, or get as they were: a start does not wait for them."""
    for alarm, said in health(ledger.open())["alarms"].items():
        if alarm.startswith(NOT_SERVED):
            click.echo(f"{alarm}: {said}", err=True)


@click.command()
@click.argument("parts", nargs=-1)
@click.option("--generate", is_flag=True, help="Start the generator of events too.")
def up(parts: tuple[str, ...], generate: bool) -> None:
    """Start the platform (or only PARTS and what they need) and wait until it answers."""
    with progress() as show:
        lifecycle.up(current(), show, parts, also=("generator",) if generate else ())
    show_unserved()
    doors = f"SQL: {current().query_url}, jdbc:hive2://{current().thrift}:{current().thrift_port}"
    CONSOLE.print(f"Airflow: {current().airflow_page}  {doors}")


@click.command()
def down() -> None:
    """Stop the platform; its state stays."""
    with progress() as show:
        for process in lifecycle.down(current(), show):
            CONSOLE.print(f"killed {process}, which had outlived its part")


@click.command()
@click.argument("part")
def restart(part: str) -> None:
    """Stop and start one PART, or bring back one that the supervisor has given up."""
    with progress() as show:
        lifecycle.restart(current(), part, show)
    show_unserved()


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(yes: bool) -> None:
    """Stop the platform and delete its state: data, ledger, logs, passwords."""
    if not yes:
        click.confirm(f"Delete all of Tidemark's state in {current().home}?", abort=True)
    with progress() as show:
        lifecycle.reset(current(), show)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(as_json: bool) -> None:
    """Show each part; exit code 1 unless every one that should run answers."""
    now = report.status(current())
    if as_json:
        click.echo(json.dumps(now.json(), indent=2))
    else:
        click.echo("\n".join(_lines(now)))
    sys.exit(0 if now.ready else 1)


def _lines(now: report.Status) -> list[str]:
    """One line a part: state, does it answer, seconds up, memory, doors, and why it does not answer."""
    total = sum(part.memory_mb for part in now.parts)
    lines = [f"{now.home}: {'ready' if now.ready else 'not ready'}, {total} MB"]
    for part in now.parts:
        answers = "answers" if part.ready else "silent"
        doors = " ".join(part.doors.values())
        facts = f"{part.state:<9} {answers:<8} {part.uptime_seconds:>6} s {part.memory_mb:>5} MB"
        lines.append(f"  {part.name:<22} {facts}  {doors} {part.said}".rstrip())
    return lines


@click.command()
@click.argument("name")
@click.option("-n", "--lines", default=50, show_default=True, help="How many of the last lines.")
def logs(name: str, lines: int) -> None:
    """Print the end of the log of part NAME."""
    try:
        supervisor.require(current(), f"logs --tail {lines} {name}")
    except SupervisorError as error:
        raise click.ClickException(str(error)) from error
    file = supervisor.log_file(current(), name)
    if not file.exists():
        logs = sorted(file.stem for file in current().log_dir.glob("*.log"))
        raise click.ClickException(f"there is no {file}; the logs are {', '.join(logs) or 'none yet'}")
    with file.open(errors="replace") as text:
        for line in deque(text, maxlen=lines):
            click.echo(line, nl=False)


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: variable -> value.")
def show_settings(as_json: bool) -> None:
    """Print every setting as a line that a shell reads again: variable, value (none: not set), meaning, default."""
    values = current().environment(*Settings.model_fields)
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    for (variable, value), field in zip(values.items(), Settings.model_fields.values(), strict=True):
        default = "none" if field.default is None else field.default
        click.echo(f"{variable}={shlex.quote(value) if value else ''}  # {field.description} Default: {default}.")
