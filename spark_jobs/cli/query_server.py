"""`tidemark query-server`, `tidemark users`: the read server, and who may ask it.

Exit codes: 0 done; 1 refused, the reason is on stderr in one line; 2 wrong usage.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click

from spark_jobs.query_server import users as known_users
from spark_jobs.query_server.users import Role, UsersError
from spark_jobs.settings import NoPassword, settings


@contextmanager
def _refusing() -> Iterator[Path]:
    """The file of users; a refusal to change it ends the command."""
    try:
        yield settings().query_users
    except UsersError as error:
        raise click.ClickException(str(error)) from error


@click.command("query-server")
def query_server() -> None:
    """Run the read server until it is stopped; `tidemark up` does so."""
    from spark_jobs.query_server.server import serve

    try:
        serve(settings())
    except NoPassword as error:
        raise click.ClickException(str(error)) from error


@click.group()
def users() -> None:
    """Who may ask the read server, beside the user that was made with the platform."""


@users.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(get_args(Role)), default="analyst", show_default=True)
@click.option("--password", is_flag=True, help="Read the password from stdin instead of generating one.")
def add_user(name: str, role: str, password: bool) -> None:
    """Let NAME in, or give him another role and password; prints the password once."""
    given = sys.stdin.readline().rstrip("\r\n") if password else None
    if password and not given:
        raise click.UsageError("stdin has no password in its first line")
    with _refusing() as file:
        made = known_users.add(file, name, role, given)
    click.echo(f"{name} is {role}" if password else made)


@users.command("list")
def list_users() -> None:
    """The names, each with its role."""
    with _refusing() as file:
        for name, user in sorted(known_users.known(file).items()):
            click.echo(f"{name:<32} {user['role']}")


@users.command("remove")
@click.argument("name")
def remove_user(name: str) -> None:
    """Let NAME in no more, from the next request on."""
    with _refusing() as file:
        known_users.remove(file, name)
        click.echo(f"removed {name}")
