"""`tidemark sql`, `tidemark explain`, `tidemark views`: ask, ask why, and see what can be asked.

Exit codes: 0 done; 1 the statement or the question was refused, the reason is on stderr in one line; 2 wrong usage.
"""

import json
import sys
from typing import Any, get_args

import click
from rich.console import Console

from spark_jobs.cli.step import ledger_step
from spark_jobs.serving.answers import Answer, Format, plain, printable, text

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
        _refuse(str(error))
    click.echo(text(answer, form, _width()), nl=False)


def _width() -> int | None:
    """The terminal's width; None where the output goes elsewhere."""
    return Console().width if sys.stdout.isatty() else None


def _refuse(reason: str) -> None:
    click.echo(f"tidemark: {printable(reason)}", err=True)
    sys.exit(1)


@click.command()
@form_option
def views(form: Format) -> None:
    """Every view: what it answers, its keys, and from which batch version and cut it is served."""
    from spark_jobs.registry import views as loaded
    from spark_jobs.view import AggregateView

    with ledger_step() as store:
        current = store.current_publication()
        sources = store.sources(current) if current else {}
    columns = ("view", "keys", "batch", "cut", "owner", "answers")
    rows: list[tuple[Any, ...]] = []
    for view in loaded():
        source = sources.get(view.id)
        keys = ", ".join(view.served_keys) if isinstance(view, AggregateView) else view.key
        built = source.batch_version if source else None
        rows.append((view.id, keys, built, source.cut if source else 0, view.owner, view.description))
    kinds = ("STRING", "STRING", "BIGINT", "BIGINT", "STRING", "STRING")
    click.echo(text(Answer(columns, kinds, rows), form, _width()), nl=False)


@click.command()
@click.argument("view")
@click.argument("key", nargs=-1, metavar="COLUMN=VALUE...")
@click.option("--limit", default=20, show_default=True, help="Rows of each part to show.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def explain(view: str, key: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show where a row of VIEW comes from: batch part, speed part, versions, and the records behind it.

    Example: tidemark explain orders_by_day store_id=3 day=2026-03-01
    """
    from spark_jobs.registry import views as loaded
    from spark_jobs.serving.explain import ExplainError
    from spark_jobs.serving.explain import explain as explained
    from spark_jobs.serving.explained import as_json as to_json
    from spark_jobs.serving.explained import lines
    from spark_jobs.warehouse import NoTable

    with ledger_step() as store:
        try:
            found = explained(store, loaded(), view, key, limit)
        except (ExplainError, NoTable) as error:
            _refuse(str(error))
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2, default=plain))
        return
    for line in lines(found, limit, _width()):
        click.echo(line)
