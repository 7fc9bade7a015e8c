"""The `tidemark` command: a table of sub-commands, each imported when it is called.

`tidemark NAME ...` -> COMMANDS[NAME] -> a click command in spark_jobs/cli/. So `tidemark status` never loads Spark.
The town's own commands are there where the project is the town.
Exit codes: docs/runbooks/exit-codes.md.
"""

import sys
from pkgutil import resolve_name
from typing import Any

import click
from pydantic import ValidationError

from spark_jobs.settings import ProjectError, settings

COMMANDS = {
    "init": "spark_jobs.cli.project:init",
    "demo": "spark_jobs.cli.demo:demo",
    "up": "spark_jobs.cli.platform:up",
    "down": "spark_jobs.cli.platform:down",
    "status": "spark_jobs.cli.platform:status",
    "alarms": "spark_jobs.cli.alarms:alarms",
    "logs": "spark_jobs.cli.platform:logs",
    "restart": "spark_jobs.cli.platform:restart",
    "reset": "spark_jobs.cli.platform:reset",
    "settings": "spark_jobs.cli.platform:show_settings",
    "topics": "spark_jobs.cli.kafka:topics_",
    "send": "spark_jobs.cli.kafka:send",
    "speed": "spark_jobs.cli.speed:speed",
    "batch": "spark_jobs.cli.batch:batch",
    "retention": "spark_jobs.cli.maintain:retention",
    "maintain": "spark_jobs.cli.maintain:maintain",
    "replay": "spark_jobs.cli.replay:replay",
    "quarantine": "spark_jobs.cli.quarantine:quarantine",
    "retract": "spark_jobs.cli.corrections:retract",
    "supersede": "spark_jobs.cli.corrections:supersede",
    "restore": "spark_jobs.cli.corrections:restore",
    "revisions": "spark_jobs.cli.corrections:revisions",
    "erase": "spark_jobs.cli.erasure:erase",
    "erasures": "spark_jobs.cli.erasure:erasures",
    "drill": "spark_jobs.cli.drill:drill",
    "model": "spark_jobs.cli.model:model",
    "pin": "spark_jobs.cli.pin:pin",
    "dbt": "spark_jobs.cli.dbt:dbt",
    "sql": "spark_jobs.cli.sql:sql",
    "query-server": "spark_jobs.cli.query_server:query_server",
    "users": "spark_jobs.cli.query_server:users",
    "schemas": "spark_jobs.cli.kafka:schemas",
    "views": "spark_jobs.cli.view:views",
    "view": "spark_jobs.cli.view:view",
    "explain": "spark_jobs.cli.serving:explain_",
    "agreement": "spark_jobs.cli.quality:agreement",
    "verify": "spark_jobs.cli.quality:verify",
}
OF_THE_TOWN = {
    "generate": "spark_jobs.sample.commands:generate",
    "import": "spark_jobs.sample.commands:import_",
}


class LazyGroup(click.Group):
    """A group whose commands are named in COMMANDS and imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_known())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = resolve_name(_known()[cmd_name]) if cmd_name in _known() else None
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a file of the project that cannot be used ends it with exit code 1, and is the reason."""
        try:
            return super().invoke(ctx)
        except ProjectError as error:
            click.echo(f"tidemark: {error}", err=True)
            sys.exit(1)


def _known() -> dict[str, str]:
    try:
        return COMMANDS | OF_THE_TOWN if settings().is_town else COMMANDS
    except ValidationError as error:
        wrong = (": ".join((*(f"TIDEMARK_{name}".upper() for name in of["loc"]), of["msg"])) for of in error.errors())
        raise click.UsageError("\n".join(wrong)) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tidemark", prog_name="tidemark")
def main() -> None:
    """Tidemark: exact, fresh, explainable, reproducible numbers from one log."""
