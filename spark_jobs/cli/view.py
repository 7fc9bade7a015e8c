"""`tidemark views`, `tidemark view show | diff | promote | rollback | retire | table`: what there is, how it is made.

Exit codes: 0 done; 1 there is no such view, versions differ, or the README's table is out of date (`--check`); 2 wrong
usage.
"""

import sys

import click

from spark_jobs.cli.serving import form_option, refuse, terminal_width
from spark_jobs.cli.step import ledger_step
from spark_jobs.serving.formatting import Format, printable, text
from spark_jobs.settings import settings


@click.command()
@form_option
def views(form: Format) -> None:
    """Every view: kind, events, grain, the batch version and cut it is served from, what speed covers past it."""
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving import catalogue
    from spark_jobs.storage import coverage

    with ledger_step() as store:
        sources = store.current_sources()
    known = loaded()
    least = min(sources[one.id].cut if one.id in sources else 0 for one in known)
    found = catalogue.listed(known, sources, coverage.covered(least))
    click.echo(text(found, form, terminal_width()), nl=False)


@click.group()
def view() -> None:
    """One view: how it is made."""


@view.command()
@click.argument("name")
@click.option("--rows", default=5, show_default=True, help="Rows of the sample; 0 asks nothing.")
def show(name: str, rows: int) -> None:
    """Print the definition of a view, its columns, the SQL that is made of it, and a sample of what it answers."""
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving import catalogue
    from spark_jobs.serving.explain import ExplainError, find
    from spark_jobs.serving.sql import SqlError, query

    known = loaded()
    try:
        found = find(known, name)
    except ExplainError as error:
        refuse(str(error))
    with ledger_step() as store:
        sources = store.current_sources()
    for title, part in catalogue.shown(found, known, sources):
        click.echo(f"{click.style(title, bold=True)}\n{part}\n")
    if not rows:
        return
    try:
        answer = query(f"SELECT * FROM `{found.name}` LIMIT {rows:d}", "serving")
    except SqlError as error:
        refuse(f"no sample: {error}")
    click.echo(click.style("sample", bold=True))
    click.echo(text(answer, "table", terminal_width()), nl=False)


@view.command()
@click.argument("name")
@click.option("--limit", default=10, show_default=True, help="Differing rows to show.")
def diff(name: str, limit: int) -> None:
    """Compare the newest version of a view with the one before it, over the same log; exit code 1 if they differ."""
    from spark_jobs.ledger.source import UNBUILT
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving.explain import ExplainError
    from spark_jobs.serving.version_diff import difference
    from spark_jobs.storage import coverage
    from spark_jobs.storage.duckdb_reader import NoTable

    known = loaded()
    with ledger_step() as store:
        sources = {one.id: UNBUILT for one in known} | store.current_sources()
    head = max(coverage.covered(0), default=0)
    try:
        old, new, compared = difference(known, name, sources, head)
    except (ExplainError, NoTable) as error:
        refuse(str(error))
    click.echo(f"{old.id} against {new.id}, up to lsn {head}: columns {', '.join(compared.shape.columns)}")
    for line in compared.first((f"version {old.version}", f"version {new.version}"), limit):
        click.echo(printable(line))
    click.echo(f"{compared.differing:,} of {compared.rows:,} rows differ")
    sys.exit(bool(compared.differing))


@view.command()
@click.argument("name")
@click.option("--to", "version", type=int, help="The version; by default the newest.")
def promote(name: str, version: int | None) -> None:
    """Serve a name from another version of its view, if that lacks nothing."""
    from spark_jobs.registry.views import project_views as loaded

    newest = max((one.version for one in loaded() if one.name == name), default=1)
    _promote(name, newest if version is None else version)


@view.command()
@click.argument("name")
def rollback(name: str) -> None:
    """Serve a name from the version before its last promotion."""
    with ledger_step() as store:
        history = store.promotions(name)
    if not history:
        refuse(f"{name} was never promoted")
    _promote(name, next((one for one in reversed(history[:-1]) if one != history[-1]), 1))


@view.command()
@click.argument("view_id", metavar="ID")
def retire(view_id: str) -> None:
    """Remove what is left of a view, or of a version (ID: NAME_v2), whose file is gone; refused while it is needed."""
    from spark_jobs.cli.step import thrift
    from spark_jobs.publication.retire import retire as make
    from spark_jobs.registry.views import project_views as loaded

    with ledger_step() as store, thrift() as execute:
        removed = make(execute, loaded(), store, view_id)
    click.echo(f"{view_id} is retired; removed: {', '.join(removed) or 'nothing was left'}")


def _promote(name: str, version: int) -> None:
    from spark_jobs.publication.publish import promote as make
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving.sql import SqlError, ask, connect

    with ledger_step() as store:
        try:
            with connect() as connection:
                make(lambda sql: ask(connection, sql).rows, loaded(), store, name, version)
        except SqlError as error:
            refuse(str(error))
    click.echo(f"serving.{name} is version {version}")


@view.command()
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if the README is out of date.")
def table(check: bool) -> None:
    """Write the table of views into the project's README, from their definitions."""
    from spark_jobs.registry.views import project_views as loaded
    from spark_jobs.serving import catalogue

    file = settings().project / "README.md"
    old = file.read_text("utf-8")
    new = catalogue.readme(loaded(), old)
    if check:
        sys.exit(old != new)
    if old != new:
        file.write_text(new, "utf-8")
        click.echo(f"wrote {file}")
