"""The commands that run the embedded platform: up, down, status, logs, restart, reset, settings."""

import json
import sys
from collections import deque
from typing import Any

import click
from rich.console import Console

from infra.embedded import lifecycle, report, supervisor
from infra.embedded.lifecycle import PlatformError, Progress
from infra.embedded.supervisor import SupervisorError
from spark_jobs.settings import Settings
from spark_jobs.settings import settings as current

CONSOLE = Console(highlight=False, soft_wrap=not sys.stdout.isatty())


class Printer:
    """Progress of a start or stop: a line for each part that is done, and what is awaited, where a person looks on."""

    def __init__(self) -> None:
        self._awaited: dict[str, Progress] = {}
        self._status = CONSOLE.status("starting") if CONSOLE.is_terminal else None

    def __enter__(self) -> "Printer":
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def __call__(self, progress: Progress) -> None:
        if progress.state in {"ready", "stopped"}:
            self._awaited.pop(progress.part, None)
            CONSOLE.print(f"{progress.part:<22} {progress.state:<8} {progress.seconds:5.1f} s")
        else:
            self._awaited[progress.part] = progress
        if self._status and self._awaited:
            self._status.update("; ".join(f"{part}: {p.said or p.state}" for part, p in self._awaited.items()))


class PlatformCommand(click.Command):
    """A command whose failures are sentences with exit code 1, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (PlatformError, SupervisorError) as error:
            raise click.ClickException(str(error)) from error


@click.command(cls=PlatformCommand)
@click.argument("parts", nargs=-1)
@click.option("--generate", is_flag=True, help="Start the generator of events too.")
def up(parts: tuple[str, ...], generate: bool) -> None:
    """Start the platform (or only PARTS and what they need) and wait until it answers."""
    with Printer() as printer:
        lifecycle.up(current(), printer, parts, also=("generator",) if generate else ())
    CONSOLE.print(f"Airflow: {current().airflow_url}  SQL: jdbc:hive2://{current().thrift}:{current().thrift_port}")


@click.command(cls=PlatformCommand)
def down() -> None:
    """Stop the platform; its state stays."""
    with Printer() as printer:
        for process in lifecycle.down(current(), printer):
            CONSOLE.print(f"killed {process}, which had outlived its part")


@click.command(cls=PlatformCommand)
@click.argument("part")
def restart(part: str) -> None:
    """Stop and start one PART, or bring back one that the supervisor has given up."""
    with Printer() as printer:
        lifecycle.restart(current(), part, printer)


@click.command(cls=PlatformCommand)
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(yes: bool) -> None:
    """Stop the platform and delete its state: data, ledger, logs, passwords."""
    if not yes:
        click.confirm(f"Delete all of Tidemark's state in {current().home}?", abort=True)
    with Printer() as printer:
        lifecycle.reset(current(), printer)


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
    file = supervisor.log_file(current(), name)
    if not file.exists():
        raise click.ClickException(f"there is no {file}; the logs are {', '.join(_logs(current())) or 'none yet'}")
    with file.open(errors="replace") as text:
        for line in deque(text, maxlen=lines):
            click.echo(line, nl=False)


def _logs(settings: Settings) -> list[str]:
    return sorted(file.stem for file in settings.log_dir.glob("*.log"))


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: variable -> value.")
def show_settings(as_json: bool) -> None:
    """Print every setting as a line of an environment file: variable, value, meaning, default."""
    rows = settings_rows(current())
    if as_json:
        click.echo(json.dumps({variable: value for variable, value, _, _ in rows}, indent=2))
        return
    for variable, value, default, meaning in rows:
        click.echo(f"{variable}={value}  # {meaning} Default: {default or 'none'}.")


def settings_rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    """(environment variable, value, default, description) of each setting, in the order of the settings module."""
    return [
        (f"TIDEMARK_{name.upper()}", _shown(getattr(settings, name)), _shown(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
    ]


def _shown(value: object) -> str:
    return "" if value is None else str(value)
