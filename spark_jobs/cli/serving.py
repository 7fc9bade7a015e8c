"""`tidemark sql`, `tidemark explain`: ask, and ask why.

Exit codes: 0 done; 1 the statement or the question was refused, the reason is on stderr in one line; 2 wrong usage.
"""

import json
import sys

import click

from spark_jobs.cli.step import (
    form_option,
    instant_of,
    json_option,
    ledger_step,
    refusing,
    show_answer,
    terminal_width,
    thrift,
)
from spark_jobs.serving.formatting import Answer, Format, plain
from spark_jobs.serving.sql import SqlError, query


@click.command()
@click.argument("statement")
@form_option
@click.option("--schema", default="serving", help="The schema of unqualified names (default serving).")
@click.option(
    "--as-of",
    metavar="TIME|PUBLICATION",
    help="Answer unqualified names as the platform did then, or when that publication was made.",
)
def sql(statement: str, form: Format, schema: str, as_of: str | None) -> None:
    """Run one statement on the Thrift server and show its rows ("-" reads it from stdin)."""
    text = sys.stdin.read() if statement == "-" else statement
    if as_of is not None:
        show_answer(_answer_as_of(text, as_of), form)
        return
    with refusing(SqlError):
        answer = query(text, schema)
    show_answer(answer, form)


def _answer_as_of(text: str, as_of: str) -> Answer:
    """By a pin of that moment, which is dropped afterwards."""
    from spark_jobs.publication import pins
    from spark_jobs.registry.views import project_views

    with ledger_step() as store:
        at = store.readable_publication(int(as_of)).done_at if as_of.isdecimal() else instant_of(as_of)
        assert at is not None, "a publication that can be read is done"
        with thrift() as execute, pins.temporary(execute, project_views(), store, at) as pin, refusing(SqlError):
            return query(text, pins.schema(pin.name))


@click.command("explain")
@click.argument("view")
@click.argument("key", nargs=-1, metavar="COLUMN=VALUE...")
@click.option("--limit", default=20, show_default=True, help="Rows of each part to show.")
@json_option
def explain_(view: str, key: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show where a row of VIEW comes from: batch part, speed part, versions, and the records behind it.

    Example: tidemark explain orders_by_day store_id=3 day=2026-03-01
    """
    from spark_jobs.registry.views import project_views
    from spark_jobs.serving import explain_report
    from spark_jobs.serving.explain import ExplainError, explain
    from spark_jobs.storage.duckdb_reader import NoTable

    with ledger_step() as store, refusing(ExplainError, NoTable):
        explanation = explain(store, project_views(), view, key, limit)
    if as_json:
        click.echo(json.dumps(explain_report.as_json(explanation), indent=2, default=plain))
        return
    for line in explain_report.lines(explanation, limit, terminal_width()):
        click.echo(line)
