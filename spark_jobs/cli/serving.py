"""`tidemark explain`: ask why.

Exit codes: 0 done; 1 the question was refused, the reason is on stderr in one line; 2 wrong usage.
"""

import json

import click

from spark_jobs.cli.step import json_option, ledger_step, refusing, terminal_width
from spark_jobs.serving.formatting import plain


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
