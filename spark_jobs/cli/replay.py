"""`tidemark replay plan | show | run | compare | approve | cancel | list`: history done again, with consent.

Exit codes as in step.py, and 3: the audit stops the run. A replay that waits for approval ends with 0, and is no
publication yet. `batch plan`, `build`, `audit` and `publish` take a replay's name for a run's.
"""

import json
from typing import Any, get_args

import click

from spark_jobs.batch.plan import Origin
from spark_jobs.cli import replay_options, replay_report
from spark_jobs.cli.batch import InOrder, audit_, build_, plan_, publish_
from spark_jobs.cli.step import by_option, instant, json_option, ledger_step, refusing, run_option, show
from spark_jobs.ledger.schema import Replay, Run
from spark_jobs.ledger.store import LedgerError
from spark_jobs.orchestration.interface import DAY
from spark_jobs.registry.views import project_views
from spark_jobs.replay.differences import differences
from spark_jobs.replay.planned import state
from spark_jobs.replay.preview import preview
from spark_jobs.replay.wanted import Wanted
from spark_jobs.serving.explain import ExplainError

name_argument = click.argument("run_id", metavar="REPLAY")


@click.group(cls=InOrder)
def replay() -> None:
    """Do a part of history again: preview, run, compare, approve, publish."""


@replay.command()
@run_option
@click.option("--reason", required=True, help="Why; kept with everything that comes of it.")
@click.option(
    "--from",
    "origin",
    type=click.Choice(get_args(Origin)),
    default="raw",
    show_default=True,
    help="raw: decode raw bytes again, then build what comes out otherwise. facts: build views again.",
)
@click.option("--view", "views", multiple=True, help="With --from facts: only this view, and others so named.")
@click.option(
    "--event-type",
    "event_types",
    multiple=True,
    help="With --from facts: the views over this event type. With --quarantined: records of its topic.",
)
@click.option("--promote", is_flag=True, help="With --view: then serve the views from their newest versions.")
@click.option("--from-day", type=click.DateTime([DAY]), help="The first day whose facts are done again.")
@click.option("--to-day", type=click.DateTime([DAY]), help="The last one; by default the first.")
@click.option("--from-lsn", type=click.IntRange(1), help="The first lsn to decode again.")
@click.option("--to-lsn", type=click.IntRange(1), help="The last one; by default the first.")
@click.option("--from-time", callback=instant, help="Decode again what landed from this ISO 8601 time on.")
@click.option("--to-time", callback=instant, help="And before this one; by default now.")
@click.option("--quarantined", is_flag=True, help="Decode again what is in quarantine.")
@click.option("--because", "causes", multiple=True, help="With --quarantined: only what is there for this reason code.")
@by_option
@json_option
def plan(
    run_id: str,
    reason: str,
    origin: Origin,
    views: tuple[str, ...],
    promote: bool,
    by: str,
    as_json: bool,
    **where: Any,
) -> None:
    """Write down what is wanted, and show what it would touch. Nothing is computed. No range: all of history."""
    replay_options.refuse_what_goes_with_nothing(origin, views, where)
    if promote and not views:
        raise click.UsageError("--promote goes with --view")
    known = project_views()
    with ledger_step() as store:
        named = replay_options.views(known, views, where["event_types"])
        wanted = Wanted(
            origin,
            named if origin == "facts" else (),
            replay_options.days(**where),
            tuple(replay_options.lsns(**where)),
            promote,
        )
        wanted.promotes(known, store.promoted())
        if origin == "facts" and wanted.lsns:
            raise LedgerError("facts are chosen by days: --from-day, --to-day")
        if wanted.is_all and any(value for name, value in where.items() if name != "event_types"):
            raise LedgerError("there is nothing in that range")
        told = preview(store, known, wanted)
        asked = Replay(run_id=run_id, wanted=wanted.as_json(), reason=reason, asked_by=by, preview=told)
        planned, begun = store.begin_replay(asked), store.run(run_id)
        _show(planned, begun, as_json)
        if not as_json:
            click.echo(f"page: {replay_report.written(planned, state(planned, begun)).as_uri()}")


@replay.command("show")
@name_argument
@json_option
def show_(run_id: str, as_json: bool) -> None:
    """What the replay wants, would touch, and changes, with its greatest differences."""
    with ledger_step() as store:
        found = store.replay(run_id)
        if found is None:
            raise LedgerError(f"no replay is called {run_id}; `tidemark replay list` shows them")
        _show(found, store.run(run_id), as_json)


def _show(of: Replay, run: Run | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(replay_report.as_json(of, state(of, run)), default=str, indent=2))
        return
    replay_report.printed(of, state(of, run))


@replay.command()
@name_argument
@click.pass_context
def run(ctx: click.Context, run_id: str) -> None:
    """Do it, up to the comparison with what is published; once that is approved, publish. Goes on where it stopped."""
    step, of = _position(run_id)
    if step is None:
        ctx.invoke(plan_, run_id=run_id, days=(), mode="changed", rebuild=False, dag_run=None, others={})
    if step in (None, "plan", "decode"):
        ctx.invoke(build_, run_id=run_id)
    if step in (None, "plan", "decode", "build"):
        ctx.invoke(audit_, run_id=run_id, accept=None, whole=False)
    if of.compared_at is None:
        ctx.invoke(compare, run_id=run_id)
    if _position(run_id)[1].approved_at is None:
        click.echo(
            f"replay {run_id} waits for approval: `tidemark replay show {run_id}`, then `replay approve {run_id}`"
        )
        return
    ctx.invoke(publish_, run_id=run_id)


def _position(run_id: str) -> tuple[str | None, Replay]:
    """The step that its run has ended last, and well; None: it has not begun."""
    with ledger_step() as store:
        of, begun, verdict = store.asked_replay(run_id), store.run(run_id), store.audit(run_id)
        if verdict is not None and not verdict.passed:
            return "build", of
        return (begun.step if begun else None), of


@replay.command()
@name_argument
def compare(run_id: str) -> None:
    """Compare what the replay has built with what is published, view by view, and write the page about it."""
    with ledger_step() as store, refusing(ExplainError):
        store.asked_replay(run_id)
        begun = store.run(run_id)
        if begun is None or begun.step not in ("build", "audit"):
            raise LedgerError(f"replay {run_id} has not built anything to compare: `tidemark replay run {run_id}`")
        found = differences(store, project_views(), begun, replay_report.folder(run_id))
        store.record_differences(run_id, [one.as_json() for one in found])
        of = store.asked_replay(run_id)
        page = replay_report.written(of, state(of, begun))
        for line in replay_report.summary(of.differences or ()):
            click.echo(line)
        click.echo(f"page: {page.as_uri()}")


@replay.command()
@name_argument
@by_option
def approve(run_id: str, by: str) -> None:
    """Agree to what the replay changes; `replay run` then publishes it."""
    with ledger_step() as store:
        of = store.approve_replay(run_id, by)
        replay_report.written(of, state(of, store.run(run_id)))
        click.echo(f"replay {run_id} is approved by {of.approved_by}")


@replay.command()
@name_argument
@by_option
def cancel(run_id: str, by: str) -> None:
    """Give it up. What is served stays as it is."""
    with ledger_step() as store:
        store.cancel_replay(run_id, by)
        click.echo(f"replay {run_id} is cancelled by {by}; what is published stays")


@replay.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The newest replays."""
    with ledger_step() as store:
        rows = [replay_report.row(of, state(of, store.run(of.run_id))) for of in store.replays()]
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=2))
    else:
        show("replays", rows)
