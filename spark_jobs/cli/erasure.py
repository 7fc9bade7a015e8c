"""`tidemark erase`, `tidemark erasures list | finish`: forget somebody, in the log and in all that was made of it.

Exit codes: 0 done; 1 refused, or it waits for something, which it names; 2 wrong usage; 75 a batch run is at work.
"""

import json
import time
from collections.abc import Iterable

import click

from spark_jobs.cli.corrections import ask_all, landed, of_somebody
from spark_jobs.cli.step import json_option, ledger_step, refusing, show, thrift
from spark_jobs.contracts.erasures import NoSubject, Subject, subject_of
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action, Place
from spark_jobs.ledger.schema import Erasure
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.messaging.producer import Producer, Record, SendError, Sent
from spark_jobs.publication import erasure as erasing_files
from spark_jobs.registry.views import project_views
from spark_jobs.serving import erasing
from spark_jobs.serving.revising import Said
from spark_jobs.speed import land
from spark_jobs.storage import coverage, log_reader

FINISH_SECONDS = 1800.0


@click.command()
@click.argument("subject", metavar="KIND=VALUE")
@click.option("--dry-run", is_flag=True, help="Only say how many records there are.")
@of_somebody
def erase(subject: str, dry_run: bool, reason: str, by: str, seconds: float) -> None:
    """Forget whom KIND=VALUE names, such as user=7: every record about them, and whatever was made of it.

    KIND is named by the schemas' x-subject. The reason is kept: do not write into it who it is.
    """
    with ledger_step() as store, refusing(NoSubject, SendError):
        whom = subject_of(subject, project_contracts())
        places = _places(store, whom)
        if not places:
            raise LedgerError(f"no record that has landed is about this {whom.kind}")
        if not dry_run:
            buried = _bury(whom, {place.topic for place in places}, seconds)
            places = _places(store, whom) if buried else places
        _tell(places)
        if dry_run:
            return
        said = Said(by, reason)
        requests = ask_all(store, [said.of(Action.ERASE, place) for place in places])
        asked = Erasure(kind=whom.kind, reason=reason, asked_by=by, records=len(places), requests=requests)
        asked.first_lsn = min(place.lsn for place in places)
        number = store.begin_erasure(asked)
        landed(store, requests, seconds)
        store.open_erasures()  # it knows its lsn from now on
    click.echo(
        f"erasure {number}: no layer counts them from the next publication on, `tidemark batch plan` begins one;"
    )
    click.echo(
        "then `tidemark erasures finish`, which the DAG maintenance does every night, takes them out of the files"
    )


@click.group()
def erasures() -> None:
    """Who was forgotten, by whose word, and how far it is."""


@erasures.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The newest first; whom it was about is not kept."""
    with ledger_step() as store:
        rows = [_row(one) for one in store.erasures()]
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str))
    else:
        show("erasures", rows)


@erasures.command()
@click.option("--wait", "seconds", type=click.FloatRange(0), default=FINISH_SECONDS, show_default=True)
@click.option("--if-ready", is_flag=True, help="Exit code 0 also where one waits for something.")
def finish(seconds: float, if_ready: bool) -> None:
    """Take what was erased out of all files, where readers have a publication past it."""
    types = project_contracts().event_types
    with ledger_step() as store:
        try:
            for one, outcome in erasing_files.finish(store, project_views(), types, thrift, seconds):
                click.echo(f"erasure {one.id}: {one.records:,} records are gone")
                click.echo(f"  pins ended: {', '.join(outcome['pins']) or 'none'}")
                click.echo(f"  publications that nobody can go back to: {outcome['publications'] or 'none'}")
                click.echo(f"  files removed: {sum(outcome['files'].values()):,}")
        except erasing_files.NotYet as waits:
            if not if_ready:
                raise
            click.echo(str(waits))


def _places(store: Store, whom: Subject) -> list[Place]:
    head = coverage.head()[0]
    return erasing.find(whom, log_reader.read_schema_history(), store.decoded_cut(), head)


def _tell(places: Iterable[Place]) -> None:
    topics = [place.topic for place in places]
    for topic in sorted({*topics}):
        click.echo(f"{topic}: {topics.count(topic):,} records; Kafka keeps its own until the topic's retention ends")


def _bury(whom: Subject, topics: set[str], seconds: float) -> bool:
    """Tombstones for compacted topics whose key is the subject, so that Kafka forgets too; waits until they landed."""
    keyed = [topic for topic in whom.keyed_topics(project_contracts()) if topic in topics]
    compacted = {contract.topic for contract in project_contracts() if contract.compacted}
    sent = list[Sent]()
    if wanted := [Record(topic, whom.value.encode(), None) for topic in keyed if topic in compacted]:
        with Producer() as producer:
            producer.send(wanted, sent.append)
    until = time.monotonic() + seconds
    while not all(land.log_end().offsets.get((one.topic, one.partition), 0) > one.offset for one in sent):
        if time.monotonic() >= until:
            raise LedgerError("the tombstones have not landed yet: is the speed application up? Then ask again")
        time.sleep(0.2)
    while sent and coverage.head()[0] < land.log_end().lsn and time.monotonic() < until:
        time.sleep(0.2)
    return bool(sent)


def _row(one: Erasure) -> dict[str, object]:
    state = "landed" if one.lsn is not None else "asked for"
    if one.finished_at is not None:
        state = "refused" if "error" in one.outcome else "finished"
    told = {"erasure": one.id, "kind": one.kind, "records": one.records, "state": state, "lsn": one.lsn}
    return told | {"by": one.asked_by, "reason": one.reason, "asked_at": one.asked_at, "finished_at": one.finished_at}
