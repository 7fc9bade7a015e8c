"""`tidemark dbt sources | build | docs`: dbt over a pin, through the Thrift server.

pin -> TIDEMARK_PIN -> dbt, as a process with an argument list. What dbt writes goes to `<home>/dbt`, the documentation
to `<home>/dbt/docs/index.html`. A project without a mart has nothing to do, which is no failure.
Exit codes: those of dbt (0 done, 1 a model failed, 2 dbt could not run), but 3 where nothing failed except tests: the
same pin would fail them again. 1 too when the sources are out of date (`--check`).
"""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from spark_jobs.cli.step import ledger_step, thrift
from spark_jobs.orchestration.interface import CHECKS_FAILED
from spark_jobs.publication import pins
from spark_jobs.registry.views import project_views
from spark_jobs.serving import dbt_sources
from spark_jobs.settings import ROOT, settings

KEPT = timedelta(days=7)
MODEL_OR_TEST = 1
"""dbt's exit code where one of them failed."""
pin_option = click.option("--pin", help="The pin to read; default: one made now, kept for 7 days.")


@click.group()
def dbt() -> None:
    """The marts: dbt over a pin."""


@dbt.command()
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if the file is out of date.")
def sources(check: bool) -> None:
    """Write the dbt folder's models/sources.yml from the views."""
    if check:
        sys.exit(_warn_of_old_sources())
    elif dbt_sources.write(project_views()):
        click.echo(f"wrote {dbt_sources.sources_file()}")


@dbt.command()
@pin_option
@click.option("--select", help="Models as dbt selects them, for instance market_days+.")
def build(pin: str | None, select: str | None) -> None:
    """Build and test the marts."""
    results = settings().dbt_dir / "target/run_results.json"
    results.unlink(missing_ok=True)
    code = _run(pin, "build", *(["--select", select] if select else []))
    sys.exit(CHECKS_FAILED if code == MODEL_OR_TEST and _only_tests_failed(results) else code)


@dbt.command()
@pin_option
def docs(pin: str | None) -> None:
    """Write the documentation: one page, for the web server of Airflow or a browser."""
    code = _run(pin, "docs", "generate", "--static")
    if code == 0:
        page = settings().dbt_docs / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(settings().dbt_dir / "target/static_index.html", page)
        click.echo(f"wrote {page}")
    sys.exit(code)


def _only_tests_failed(results: Path) -> bool:
    """Whether, by what dbt wrote of its run, some tests found rows and nothing else went wrong."""
    if not results.exists():
        return False
    ended = {one["status"] for one in json.loads(results.read_text())["results"]}
    return "fail" in ended and not ended & {"error", "runtime error"}


def _run(pin: str | None, *arguments: str) -> int:
    """The exit code of dbt over the pin, which is made if it is not there. One core is left to readers of views."""
    here = settings()
    if not any((here.dbt_folder / "models").rglob("*.sql")):
        click.echo(f"no models in {here.dbt_folder}: there is nothing to do")
        sys.exit(0)
    _warn_of_old_sources()
    with ledger_step() as store, thrift() as execute:
        name = pin or f"dbt_{datetime.now(UTC):%Y%m%d_%H%M%S}"
        made = pins.create(execute, project_views(), store, name, keep=KEPT)
    folders = ["--project-dir", str(here.dbt_folder), "--profiles-dir", str(ROOT / "infra/conf")]
    written = ["--target-path", str(here.dbt_dir / "target"), "--log-path", str(here.dbt_dir / "logs")]
    command = [str(Path(sys.executable).parent / "dbt"), *arguments, *folders, *written]
    asked = {  # by the profile, and by models/sources.yml
        "TIDEMARK_THRIFT_HOST": here.thrift,
        "TIDEMARK_THRIFT_PORT": str(here.thrift_port),
        "TIDEMARK_THRIFT_USER": here.thrift_user,
        "DBT_ENV_SECRET_TIDEMARK_THRIFT_PASSWORD": here.password("thrift"),  # dbt blots such variables out of its logs
        "TIDEMARK_MARTS_THREADS": str(max(1, here.cores - 1)),
        "TIDEMARK_PIN": pins.schema(made.name),
    }
    return subprocess.run(command, env={**os.environ, **asked}, check=False).returncode


def _warn_of_old_sources() -> bool:
    """Whether sources.yml is out of date. Only a developer's own command rewrites it, no scheduled run."""
    if dbt_sources.is_current(project_views()):
        return False
    click.echo(f"{dbt_sources.sources_file()} is out of date: run `tidemark dbt sources`", err=True)
    return True
