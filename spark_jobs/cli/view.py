"""`tidemark views`, `tidemark view show | diff | promote | rollback | retire | table`: what there is, how it is made.

Exit codes: 0 done; 1 there is no such view, versions differ, or the README's table is out of date (`--check`); 2 wrong
usage.
"""

import sys

import click

from spark_jobs.cli.step import form_option, ledger_step, refuse, refusing, show_answer, thrift
from spark_jobs.ledger.source import with_unbuilt
from spark_jobs.publication.publish import promote
from spark_jobs.publication.retire import retire
from spark_jobs.registry.views import project_views
from spark_jobs.serving import catalogue
from spark_jobs.serving.explain import ExplainError, find
from spark_jobs.serving.formatting import Format, printable
from spark_jobs.serving.sql import SqlError, query
from spark_jobs.serving.version_diff import difference
from spark_jobs.settings import settings
from spark_jobs.storage import coverage
from spark_jobs.storage.duckdb_reader import NoTable


@click.command()
@form_option
def views(form: Format) -> None:
    """Every view: kind, events, grain, the batch version and cut it is served from, what speed covers past it."""
    with ledger_step() as store:
        sources = with_unbuilt(project_views().by_id, store.current_sources())
        named = store.serving_sql()
    least = min(source.cut for source in sources.values())
    show_answer(catalogue.listed(project_views(), sources, coverage.covered(least), named), form)


@click.group()
def view() -> None:
    """One view: how it is made."""


@view.command()
@click.argument("name")
@click.option("--rows", default=5, show_default=True, help="Rows of the sample; 0 asks nothing.")
def show(name: str, rows: int) -> None:
    """Print the definition of a view, its columns, the SQL that is made of it, and a sample of what it answers."""
    known = project_views()
    with refusing(ExplainError):
        named = find(known, name)
    with ledger_step() as store:
        sources = store.current_sources()
    for title, part in catalogue.shown(named, known, sources):
        click.echo(f"{click.style(title, bold=True)}\n{part}\n")
    if not rows:
        return
    try:
        answer = query(f"SELECT * FROM `{named.name}` LIMIT {rows:d}", "serving")
    except SqlError as error:
        refuse(f"no sample: {error}")
    click.echo(click.style("sample", bold=True))
    show_answer(answer)


@view.command()
@click.argument("name")
@click.option("--limit", default=10, show_default=True, help="Differing rows to show.")
def diff(name: str, limit: int) -> None:
    """Compare the newest version of a view with the one before it, over the same log; exit code 1 if they differ."""
    known = project_views()
    with ledger_step() as store:
        sources = with_unbuilt(known.by_id, store.current_sources())
    head, _ = coverage.head()
    with refusing(ExplainError, NoTable):
        old, new, compared = difference(known, name, sources, head)
    click.echo(f"{old.id} against {new.id}, up to lsn {head}: columns {', '.join(compared.shape.columns)}")
    for line in compared.first((f"version {old.version}", f"version {new.version}"), limit):
        click.echo(printable(line))
    click.echo(f"{compared.differing:,} of {compared.rows:,} rows differ")
    sys.exit(bool(compared.differing))


@view.command("promote")
@click.argument("name")
@click.option("--to", "version", type=int, help="The version; by default the newest.")
def promote_(name: str, version: int | None) -> None:
    """Serve a name from another version of its view, if that lacks nothing."""
    newest = max((view.version for view in project_views() if view.name == name), default=1)
    _promote(name, newest if version is None else version)


@view.command()
@click.argument("name")
def rollback(name: str) -> None:
    """Serve a name from the version before its last promotion."""
    with ledger_step() as store:
        history = store.promotions(name)
    if not history:
        refuse(f"{name} was never promoted")
    _promote(name, next((version for version in reversed(history) if version != history[-1]), 1))


def _promote(name: str, version: int) -> None:
    with ledger_step() as store, thrift() as execute:
        promote(execute, project_views(), store, name, version)
    click.echo(f"serving.{name} is version {version}")


@view.command("retire")
@click.argument("view_id", metavar="ID")
def retire_(view_id: str) -> None:
    """Remove what is left of a view, or of a version (ID: NAME_v2), whose file is gone; refused while it is needed."""
    with ledger_step() as store, thrift() as execute:
        removed = retire(execute, project_views(), store, view_id)
    click.echo(f"{view_id} is retired; removed: {', '.join(removed) or 'nothing was left'}")


@view.command()
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if the README is out of date.")
def table(check: bool) -> None:
    """Write the table of views into the project's README, from their definitions."""
    file = settings().project / "README.md"
    old = file.read_text("utf-8")
    new = catalogue.readme(project_views(), old)
    if check:
        sys.exit(old != new)
    if old != new:
        file.write_text(new, "utf-8")
        click.echo(f"wrote {file}")
