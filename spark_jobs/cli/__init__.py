"""The `tidemark` command: a table of sub-commands, each imported when it is called.

`tidemark NAME ...` -> its entry in the table -> a click command. So `tidemark status` never loads Spark, and
`tidemark --help` no command.
The town's own commands are there where the project is the town.
Exit codes: docs/runbooks/exit-codes.md.
"""

import sys
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

import click
from pydantic import ValidationError

from spark_jobs.cli.commands import OF_THE_TOWN, SECTIONS, Section
from spark_jobs.settings import ProjectError, settings


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _entries().get(cmd_name)
        command: click.Command | None = entry and resolve_name(f"spark_jobs.{entry.target}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; what is like an unknown name is named too, which click looks for among imported ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section per subject, the lines of all below each other."""
        width = max(map(len, _entries()))
        for title, section in _sections().items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.line) for name, entry in section.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a file of the project that cannot be used ends it with exit code 1, and is the reason."""
        try:
            return super().invoke(ctx)
        except ProjectError as error:
            click.echo(f"tidemark: {error}", err=True)
            sys.exit(1)


def _entries() -> Section:
    return {name: entry for section in _sections().values() for name, entry in section.items()}


def _sections() -> Mapping[str, Section]:
    try:
        return SECTIONS | OF_THE_TOWN if settings().is_town else SECTIONS
    except ValidationError as error:
        wrong = (": ".join((*(f"TIDEMARK_{name}".upper() for name in of["loc"]), of["msg"])) for of in error.errors())
        raise click.UsageError("\n".join(wrong)) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tidemark", prog_name="tidemark")
def main() -> None:
    """Tidemark: exact, fresh, explainable, reproducible numbers from one log."""
