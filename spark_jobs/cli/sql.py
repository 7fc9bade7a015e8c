"""`tidemark sql`: ask the read server, or Spark.

statement -> the read server's JSON -> table, CSV or JSON. It imports little: a small question takes little time.
Exit codes: 0 done; 1 the statement was refused, the reason is on stderr in one line; 2 wrong usage.
"""

import json
import sys
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Any, NoReturn, get_args

import click

from spark_jobs.client import DoorError, connect
from spark_jobs.serving.formatting import Answer, Format, printable, repeated, text

MOMENT = "Answer unqualified names as the platform did then, or when that publication was made."


@click.command()
@click.argument("statement")
@click.option("--format", "form", type=click.Choice(get_args(Format)), default="table", show_default=True, help="Rows.")
@click.option("--schema", default="serving", help="The schema of unqualified names (default serving).")
@click.option("--as-of", metavar="TIME|PUBLICATION", callback=lambda *given: _moment(given[-1]), help=MOMENT)
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="duckdb: the read server, which takes one SELECT; spark: the Thrift server, which takes all of Spark's SQL.",
)
def sql(statement: str, form: Format, schema: str, as_of: str | None, engine: str) -> None:
    """Run one statement and show its rows ("-" reads it from stdin)."""
    asked = sys.stdin.read() if statement == "-" else statement
    answer = _by_spark(asked, schema, as_of) if engine == "spark" else _by_the_read_server(asked, schema, as_of)
    if form == "json" and (reason := repeated(answer.columns)):
        _refuse(reason)
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    click.echo(text(answer, form, width), nl=False)


def _moment(given: str | None) -> str | None:
    """As it was given; BadParameter where it is a time without its zone, or none."""
    if given is None or given.isdecimal():
        return given
    try:
        at = datetime.fromisoformat(given)
    except ValueError as error:
        raise click.BadParameter(f"{given!r} is neither an ISO 8601 time nor the number of a publication") from error
    if at.tzinfo is None:
        raise click.BadParameter(f"{given!r} lacks its zone: write {given}Z for UTC")
    return at.astimezone(UTC).isoformat()


def _by_the_read_server(statement: str, schema: str, as_of: str | None) -> Answer:
    try:
        return read(statement, schema, as_of)
    except DoorError as error:
        _refuse(str(error))


def _refuse(reason: str) -> NoReturn:
    click.echo(f"tidemark: {printable(reason)}", err=True)
    sys.exit(1)


def read(statement: str, schema: str = "serving", as_of: str | None = None) -> Answer:
    """The read server's answer to one SELECT, on a connection of its own. DoorError."""
    with connect() as door:
        said = door.lists(statement, schema, as_of)
    names, types = ([column[what] for column in said["columns"]] for what in ("name", "type"))
    return Answer(tuple(names), tuple(types), [tuple(map(_flat, row)) for row in said["rows"]])


def _flat(value: Any) -> Any:
    """A list as its JSON, as Spark's protocol has it."""
    return json.dumps(value, ensure_ascii=False, default=float) if isinstance(value, list | dict) else value


def _by_spark(statement: str, schema: str, as_of: str | None) -> Answer:
    from spark_jobs.cli.step import refusing
    from spark_jobs.serving.sql import SqlError, query

    if as_of is not None:
        return _by_a_pin(statement, as_of)
    with refusing(SqlError):
        return query(statement, schema)


def _by_a_pin(statement: str, as_of: str) -> Answer:
    """The answer from a pin of that moment, which is dropped afterwards."""
    from spark_jobs.cli.step import instant_of, ledger_step, refusing, thrift
    from spark_jobs.publication import pins
    from spark_jobs.registry.views import project_views
    from spark_jobs.serving.sql import SqlError, query

    with ledger_step() as store:
        at = store.readable_publication(int(as_of)).done_at if as_of.isdecimal() else instant_of(as_of)
        assert at is not None, "a publication that can be read is done"
        with thrift() as execute, pins.temporary(execute, project_views(), store, at) as pin, refusing(SqlError):
            return query(statement, pins.schema(pin.name))
