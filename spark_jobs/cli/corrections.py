"""`tidemark retract`, `supersede`, `restore`, `revisions`: facts corrected by hand.

What is said lands as an entry of the log, through the speed application, and counts from the next publication on. Raw
bytes stay as they are. Exit codes: 0 landed, or shown; 1 refused; 2 wrong usage.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import click

from spark_jobs.cli.step import by_option, json_option, ledger_step, show
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action, Revision
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.serving import revising
from spark_jobs.serving.revising import Fact, NothingToRevise, Said
from spark_jobs.speed import revise
from spark_jobs.storage import coverage, log_reader

FEW = 20
Command = Callable[..., Any]


def of_somebody(command: Command) -> Command:
    """Options of a command that has something landed: why, whose word it is, how long to wait."""
    patience = click.FloatRange(0)
    for option in (
        click.option("--wait", "seconds", type=patience, default=60.0, show_default=True, help="Until it has landed."),
        by_option,
        click.option("--reason", required=True, help="Why; kept in the log with the revision."),
    ):
        command = option(command)
    return command


def _of_a_fact(command: Command) -> Command:
    return click.argument("event_type")(click.argument("event_id")(of_somebody(command)))


@click.command()
@_of_a_fact
def retract(event_type: str, event_id: str, reason: str, by: str, seconds: float) -> None:
    """Take a fact back: it, and whatever repeats it, counts nowhere from the next publication on."""
    with ledger_step() as store:
        fact, _, _ = _found(store, event_type, event_id)
        ask_for(store, [fact.revision(Said(by, reason), Action.RETRACT)], seconds)


@click.command()
@_of_a_fact
@click.option(
    "--file", "source", type=click.File("rb"), default="-", help="The corrected event. Default: standard input."
)
def supersede(event_type: str, event_id: str, source: BinaryIO, reason: str, by: str, seconds: float) -> None:
    """Have a fact read as another event of the same type and id, from the next publication on."""
    with ledger_step() as store:
        fact, history, head = _found(store, event_type, event_id)
        try:
            revision = revising.superseding(fact, source.read().rstrip(b"\n"), Said(by, reason), history, head)
        except NothingToRevise as error:
            raise LedgerError(str(error)) from error
        ask_for(store, [revision], seconds)


@click.command()
@_of_a_fact
def restore(event_type: str, event_id: str, reason: str, by: str, seconds: float) -> None:
    """Take back a retraction, or a corrected event: the record counts as it was sent."""
    with ledger_step() as store:
        fact, history, head = _found(store, event_type, event_id)
        if fact.identity not in history.revisions.at(head).by_identity:
            raise LedgerError(f"nothing was said of {event_type} {event_id}")
        ask_for(store, [fact.revision(Said(by, reason), Action.RESTORE)], seconds)


@click.command()
@click.option("--limit", type=click.IntRange(1), default=FEW, show_default=True, help="The newest ones.")
@json_option
def revisions(limit: int, as_json: bool) -> None:
    """What was said afterwards of single records: who, when, why."""
    entries = log_reader.read_schema_history().revisions.entries
    rows = [
        {"lsn": one.lsn, "action": one.action, "record": str(one.place), "event_type": one.event_type}
        | {"event_id": one.event_id, "reason": one.reason, "by": one.by, "at": one.at}
        for one in entries[: -limit - 1 : -1]
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str))
    else:
        show(f"{len(entries):,} revisions, newest first", rows)


def _found(store: Store, event_type: str, event_id: str) -> tuple[Fact, SchemaHistory, int]:
    if event_type not in project_contracts() or project_contracts().of(event_type).is_outcome:
        raise LedgerError(f"no event type is called {event_type}")
    history, head = log_reader.read_schema_history(), coverage.head()[0]
    try:
        return revising.find(event_type, event_id, history, store.decoded_cut(), head), history, head
    except NothingToRevise as error:
        raise LedgerError(str(error)) from error


def ask_for(store: Store, asked: Sequence[Revision], seconds: float, *, dry_run: bool = False) -> None:
    """Ask for the revisions, and wait until they have landed."""
    if not asked:
        raise LedgerError("nothing fits")
    first = asked[0]
    click.echo(f"{first.action}: {len(asked):,} records, the first {first.place}")
    if dry_run:
        return
    lsn = landed(store, ask_all(store, asked), seconds)
    if lsn is None:
        click.echo("asked; it lands when the speed application looks: `tidemark revisions`")
    else:
        click.echo(f"lsn {lsn}: readers see it from the next publication on, `tidemark batch plan` begins one")


def ask_all(store: Store, asked: Sequence[Revision]) -> list[int]:
    """Ask for the revisions; the numbers of the requests."""
    return [revise.ask(store, asked[at : at + revise.MOST]) for at in range(0, len(asked), revise.MOST)]


def landed(store: Store, requests: Sequence[int], seconds: float) -> int | None:
    """The last lsn of what was asked for; None where it has not landed in that time. LedgerError where it cannot."""
    until = time.monotonic() + seconds
    answers = [_answer(store, number, until) for number in requests]
    return None if None in answers else answers[-1]


def _answer(store: Store, number: int, until: float) -> int | None:
    while (request := store.answered(number)) is None:
        if time.monotonic() >= until:
            return None
        time.sleep(0.2)
    if "error" in request.answer:
        raise LedgerError(f"it could not be landed: {request.answer['error']}")
    return int(request.answer["lsn"])
