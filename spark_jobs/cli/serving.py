"""`tidemark sql`, `tidemark explain`: ask, and ask why.

Exit codes: 0 done; 1 the statement or the question was refused, the reason is on stderr in one line; 2 wrong usage.
"""

import json
import sys
from typing import NoReturn, get_args

import click
from rich.console import Console

from spark_jobs.cli.step import ledger_step
from spark_jobs.serving.formatting import Format, plain, printable, text

form_option = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Format)),
    default="table",
    show_default=True,
    help="How to show rows.",
)


@click.command()
@click.argument("statement")
@form_option
@click.option("--schema", default="serving", help="The schema of unqualified names (default serving).")
def sql(statement: str, form: Format, schema: str) -> None:
    """Run one statement on the Thrift server and show its rows ("-" reads it from stdin)."""
    from spark_jobs.serving.sql import SqlError, query

    try:
        answer = query(sys.stdin.read() if statement == "-" else statement, schema)
    except SqlError as error:
        refuse(str(error))
    click.echo(text(answer, form, terminal_width()), nl=False)


def terminal_width() -> int | None:
    """The terminal's width; None where the output goes elsewhere."""
    return Console().width if sys.stdout.isatty() else None


def refuse(reason: str) -> NoReturn:
    click.echo(f"tidemark: {printable(reason)}", err=True)
    sys.exit(1)


@click.command()
@click.argument("view")
@click.argument("key", nargs=-1, metavar="COLUMN=VALUE...")
@click.option("--limit", default=20, show_default=True, help="Rows of each part to show.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def explain(view: str, key: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show where a row of VIEW comes from: batch part, speed part, versions, and the records behind it.

    Example: tidemark explain orders_by_day store_id=3 day=2026-03-01
    """
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving.explain import ExplainError
    from spark_jobs.serving.explain import explain as explained
    from spark_jobs.serving.explain_report import as_json as to_json
    from spark_jobs.serving.explain_report import lines
    from spark_jobs.storage.duckdb_reader import NoTable

    with ledger_step() as store:
        try:
            found = explained(store, loaded(), view, key, limit)
        except (ExplainError, NoTable) as error:
            refuse(str(error))
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2, default=plain))
        return
    for line in lines(found, limit, terminal_width()):
        click.echo(line)
