"""`tidemark dbt sources | build | docs`: dbt over a pin, through the Thrift server.

pin -> TIDEMARK_PIN -> dbt, as a process with an argument list. What dbt writes goes to `<home>/dbt`, the documentation
to `<home>/dbt/docs/index.html`. A project without a mart has nothing to do, which is no failure.
Exit codes: those of dbt (0 done, 1 a model or test failed, 2 dbt could not run);
1 too when the sources are out of date (`--check`).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from spark_jobs.cli.step import ledger_step, thrift
from spark_jobs.settings import ROOT, settings

KEPT = timedelta(days=7)
pin_option = click.option("--pin", help="The pin to read; default: one made now, kept for 7 days.")


@click.group()
def dbt() -> None:
    """The marts: dbt over a pin."""


@dbt.command()
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if the file is out of date.")
def sources(check: bool) -> None:
    """Write the dbt folder's models/sources.yml from the views."""
    from spark_jobs.registry.views import project_views
    from spark_jobs.serving import dbt_sources

    if check:
        sys.exit(_warn_of_old_sources())
    elif dbt_sources.write(project_views()):
        click.echo(f"wrote {dbt_sources.sources_file()}")


@dbt.command()
@pin_option
@click.option("--select", help="Models as dbt selects them, for instance market_days+.")
def build(pin: str | None, select: str | None) -> None:
    """Build and test the marts."""
    _end_without_marts()
    _warn_of_old_sources()
    sys.exit(run(["build", *(["--select", select] if select else [])], _pinned(pin)))


@dbt.command()
@pin_option
def docs(pin: str | None) -> None:
    """Write the documentation: one page, for the web server of Airflow or a browser."""
    _end_without_marts()
    _warn_of_old_sources()
    code = run(["docs", "generate", "--static"], _pinned(pin))
    if code == 0:
        page = settings().dbt_docs / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(home() / "target/static_index.html", page)
        click.echo(f"wrote {page}")
    sys.exit(code)


def run(arguments: Sequence[str], schema: str) -> int:
    """dbt with these arguments over the pin's schema; its exit code."""
    folders = ["--project-dir", str(settings().dbt_folder), "--profiles-dir", str(ROOT / "infra/conf")]
    written = ["--target-path", str(home() / "target"), "--log-path", str(home() / "logs")]
    command = [str(Path(sys.executable).parent / "dbt"), *arguments, *folders, *written]
    return subprocess.run(command, env=environment(schema), check=False).returncode


def environment(schema: str) -> dict[str, str]:
    """What the profile and models/sources.yml ask for. One core is left to the readers of served views."""
    server = {"TIDEMARK_THRIFT_HOST": settings().thrift, "TIDEMARK_THRIFT_PORT": str(settings().thrift_port)}
    threads = {"TIDEMARK_MARTS_THREADS": str(max(1, settings().cores - 1))}
    return {**os.environ, **server, **threads, "TIDEMARK_PIN": schema}


def home() -> Path:
    return settings().home / "dbt"


def _pinned(name: str | None) -> str:
    """The schema of the pin, which is made if it is not there."""
    from spark_jobs.publication import pins
    from spark_jobs.registry.views import project_views

    with ledger_step() as store, thrift() as execute:
        made = pins.create(execute, project_views(), store, name or f"dbt_{datetime.now(UTC):%Y%m%d_%H%M%S}", keep=KEPT)
        return pins.schema(made.name)


def _end_without_marts() -> None:
    if not any((settings().dbt_folder / "models").rglob("*.sql")):
        click.echo(f"no models in {settings().dbt_folder}: there is nothing to do")
        sys.exit(0)


def _warn_of_old_sources() -> bool:
    """Whether sources.yml is out of date. Only a developer's own command rewrites it, no scheduled run."""
    from spark_jobs.registry.views import project_views
    from spark_jobs.serving import dbt_sources

    if dbt_sources.is_current(project_views()):
        return False
    click.echo(f"{dbt_sources.sources_file()} is out of date: run `tidemark dbt sources`", err=True)
    return True
