"""`tidemark batch plan | build | audit | publish | rollback | diff | show | status`.

Exit codes as in step.py, and 3: the audit stops the run. A step that fails is written down, so that another run may
begin. Spark is imported by the steps that may need it.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import click

from spark_jobs.batch.plan import describe, plan, plan_rebuild
from spark_jobs.cli import replay_report, run_list, run_report
from spark_jobs.cli.step import json_option, ledger_step, run_id_of_option, run_option, thrift
from spark_jobs.ledger import view_lock
from spark_jobs.ledger.store import Busy, NothingToDo, Store
from spark_jobs.ledger.turns import DAG_RUN, MERGEABLE
from spark_jobs.orchestration.interface import CHECKS_FAILED, DAY
from spark_jobs.publication import served_sample
from spark_jobs.publication.publish import publish
from spark_jobs.publication.rollback import rollback
from spark_jobs.registry.views import project_views
from spark_jobs.replay.planned import plan_replay
from spark_jobs.replay.wanted import Wanted
from spark_jobs.serving import source_diff
from spark_jobs.serving.render import ready
from spark_jobs.settings import settings
from spark_jobs.storage import log_reader


class InOrder(click.Group):
    """Lists its commands in the order of a run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _days_of(ctx: click.Context, option: click.Parameter, said: Iterable[str]) -> dict[str, str]:
    """Callback of an option: runs, each with its day."""
    pairs = [text.rpartition("=")[::2] for text in said]
    day = click.DateTime([DAY])
    return {run_id_of_option(ctx, option, run): f"{day.convert(text, option, ctx):{DAY}}" for run, text in pairs}


@click.group(cls=InOrder)
def batch() -> None:
    """The batch layer: plan, build, audit, publish."""


@batch.command("plan")
@run_option
@click.option("--day", "days", multiple=True, type=click.DateTime([DAY]), help="Rebuild this day as well.")
@click.option("--mode", type=click.Choice(["changed", "full"]), default="changed", help="full: everything from facts.")
@click.option("--rebuild", is_flag=True, help="Views once more, at the published cut: as the settings rebuild_* say.")
@click.option("--dag-run", help="What Airflow calls the run.")
@click.option("--also", "others", multiple=True, metavar="RUN=DAY", callback=_days_of, help="Another waits, for it.")
def plan_(
    run_id: str,
    days: tuple[datetime, ...],
    mode: Any,
    rebuild: bool,
    dag_run: str | None,
    others: Mapping[str, str],
) -> None:
    """Choose the run's cut and write it down."""
    if rebuild and (days or mode == "full"):
        raise click.UsageError("--rebuild goes without --mode and without days")
    with ledger_step() as store, _written_down(store, run_id):
        views = project_views()
        view_lock.check(store, views)
        log_reader.read_schema_history()
        if store.replay(run_id) is not None:
            planned = plan_replay(store, views, run_id)
        elif rebuild:
            named = (settings().rebuild_views or "").replace(",", " ").split()
            chosen = [view.id for view in Wanted("facts", tuple(named)).chosen(views)]
            planned = plan_rebuild(store, chosen, run_id, settings().rebuild_parts, settings().rebuild_from)
        else:
            about = {MERGEABLE: mode == "changed", DAG_RUN: dag_run}
            planned = plan(
                store, [view.column for view in views], run_id, [day.date() for day in days], mode, about, others
            )
        for line in describe(planned):
            click.echo(line)


@contextmanager
def _written_down(store: Store, run_id: str) -> Iterator[None]:
    """A plan that fails leaves no run whose failure could be told."""
    try:
        yield
    except (Busy, NothingToDo):
        raise
    except Exception as error:
        store.plan_stopped(run_id, (str(error) or repr(error)).splitlines()[0])
        raise


def _cores(store: Store, run_id: str) -> int | None:
    """How many of Spark's cores a step takes at most."""
    return settings().replay_cores if store.replay(run_id) is not None else None


@batch.command("build")
@run_option
def build_(run_id: str) -> None:
    """Decode what is new, and build every view at the run's cut."""
    from spark_jobs.batch.build import build
    from spark_jobs.batch.decode_step import decode
    from spark_jobs.storage.session import batch_session

    with ledger_step(run_id) as store:
        run = store.active_run(run_id)
        with batch_session("tidemark-batch", _cores(store, run_id)) as spark:
            decode(spark, store, run, click.echo)
            build(spark, store, project_views(), run_id, click.echo)
        click.echo(f"outcome: {run_report.written(store, run_id).as_uri()}")


@batch.command("audit")
@run_option
@click.option("--accept", metavar="REASON", help="Accept rows that differ from speed for no known cause, and say why.")
@click.option("--whole", is_flag=True, help="Compare every row with the speed layer's, not those that were touched.")
def audit_(run_id: str, accept: str | None, whole: bool) -> None:
    """Hold the run's new versions against their expectations and against the speed layer.

    Exit code 3 stops the run: nothing of it is published, and what is published keeps serving.
    """
    from spark_jobs.quality.gate import audit
    from spark_jobs.storage.session import batch_session

    with ledger_step(run_id) as store, ExitStack() as started:
        if (replay := store.replay(run_id)) is not None:  # people look at what differs, and approve it
            accept = accept or f"replay {run_id}: {replay.reason}"
        session = cache(lambda: started.enter_context(batch_session("tidemark-audit", _cores(store, run_id))))
        passed = audit(session, store, project_views(), run_id, click.echo, accept, whole=whole)
        verdict = store.audit(run_id)
        click.echo(f"outcome: {run_report.written(store, run_id).as_uri()}")
    docs = verdict.docs_url if verdict else None
    if passed:
        click.echo(f"run {run_id} passed" + (f" with {verdict.warnings} warnings: {docs}" if verdict else ""))
        return
    click.echo(f"run {run_id} did not pass; the current publication keeps serving. Data Docs: {docs}", err=True)
    sys.exit(CHECKS_FAILED)


@batch.command("publish")
@run_option
def publish_(run_id: str) -> None:
    """Show the run's builds to readers, if its audit passed."""
    with ledger_step(run_id) as store, thrift() as execute:
        publication = publish(execute, project_views(), store, run_id, served_sample.hold)
        run_report.written(store, run_id)
        run = store.run(run_id)
        if run and (looked_at := run.summary.get("looked_at")):
            click.echo(f"served as the files say, by a sample: {', '.join(looked_at)}")
        for name, said in (run.summary.get("refused") or {}).items() if run else ():
            click.echo(f"view {name} keeps its old text: {said}", err=True)
        for view_id, lsn in (run.summary.get("held_back") or {}).items() if run else ():
            click.echo(f"view {view_id} keeps its old source: it has no speed partials at lsn {lsn}")
        if publication is None:
            click.echo(f"run {run_id} had nothing new: nothing is published, the current publication stands")
        else:
            click.echo(f"publication {publication.id} is in force: cut {publication.cut}")


@batch.command("rollback")
@click.argument("publication", type=int, required=False)
def rollback_(publication: int | None) -> None:
    """Serve PUBLICATION again (default: the one that readers saw before)."""
    with ledger_step() as store, thrift() as execute:
        before = store.promoted()
        made = rollback(execute, project_views(), store, publication)
        click.echo(f"publication {made.id} is in force: what publication {made.restores} showed, cut {made.cut}")
        for name, version in sorted(store.promoted().items() - before.items()):
            click.echo(f"serving.{name} is version {version} again")


@batch.command("diff")
@click.argument("before", type=int)
@click.argument("after", type=int)
def diff_(before: int, after: int) -> None:
    """What readers see otherwise by publication AFTER than by BEFORE, over the same log; exit code 1 if anything."""
    views = project_views()
    with ledger_step() as store:
        promoted = store.promoted()
        sides = [store.readable_publication(number) for number in (before, after)]
        old, new = (ready(views, store.sources(side), promoted) for side in sides)
        folder = settings().data_docs / "publications" / f"{before}-{after}"
        names = (f"publication {before}", f"publication {after}")
        found = source_diff.between(views, old, new, max(side.cut for side in sides), names, folder)
        differing = [view.as_json() for view in found]
    for line in replay_report.summary(differing):
        click.echo(line)
    if differing:
        click.echo(f"all rows: {folder.as_uri()}")
    sys.exit(bool(differing))


@batch.command("show")
@click.argument("run_id", metavar="RUN")
@json_option
def show_(run_id: str, as_json: bool) -> None:
    """What came of RUN, view by view: rows, seconds, differences from speed by cause, what readers see."""
    with ledger_step() as store:
        found = run_report.outcome(store, run_id)
    if as_json:
        click.echo(json.dumps(found, default=str, indent=2))
    else:
        run_report.printed(found)


@batch.command("failed", hidden=True)
@run_option
@click.option("--task", required=True, help="What Airflow calls the step.")
def failed_(run_id: str, task: str) -> None:
    """For Airflow: a step failed for good, which is written down unless the step has said so itself."""
    why = f"{task} was killed, or did not begin, and could not say why: Airflow's log of it has what is known"
    with ledger_step() as store:
        if store.run(run_id) is not None:
            store.fail_run(run_id, why)
        elif run_id not in {stopped.run_id for stopped in store.stopped_plans()}:
            store.plan_stopped(run_id, why)


@batch.command()
@json_option
def status(as_json: bool) -> None:
    """Publications and runs, newest first; the runs that wait, and plans that failed since the last one began."""
    with ledger_step() as store:
        found = run_list.listed(store)
    if as_json:
        click.echo(json.dumps(found, default=str, indent=2))
    else:
        run_list.printed(found)
