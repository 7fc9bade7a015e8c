"""`tidemark quarantine list | show | readmit | discard`: records that no schema accepts. Nothing is ever deleted.

What is said of a record lands as an entry of the log, through the speed application, and counts from the next
publication on. Exit codes: 0 landed, or shown; 1 refused, or nothing fits; 2 wrong usage.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from spark_jobs.cli.corrections import FEW, Command, ask_for, of_somebody
from spark_jobs.cli.step import json_option, ledger_step, show
from spark_jobs.contracts.revisions import Action, Revision
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.engine.decode.reasons import shown
from spark_jobs.serving import quarantine as held
from spark_jobs.serving import revising
from spark_jobs.serving.formatting import printable
from spark_jobs.serving.quarantine import DISCARDED, Rule, Which
from spark_jobs.serving.revising import Said
from spark_jobs.storage import coverage, log_reader


def _which(command: Command) -> Command:
    """Options that choose quarantined records."""
    for option in (
        click.option("--at", "places", multiple=True, metavar="TOPIC/PARTITION/OFFSET", help="Only this record."),
        click.option("--to-lsn", type=click.IntRange(1)),
        click.option("--from-lsn", type=click.IntRange(1)),
        click.option("--field", "fields", multiple=True, help="Refused for this field."),
        click.option("--event-type", "event_types", multiple=True, help="Claiming to be of this event type."),
        click.option("--topic", "topics", multiple=True, help="Sent to this topic."),
        click.option("--because", "reasons", multiple=True, help="Refused for this reason code."),
    ):
        command = option(command)
    return command


def _chosen(places: Sequence[str], **which: Any) -> Which:
    try:
        parts = (place.rsplit("/", 2) for place in places)
        named = [(topic, int(partition), int(offset)) for topic, partition, offset in parts]
    except ValueError:
        raise click.BadParameter(f"{', '.join(places)}: write TOPIC/PARTITION/OFFSET") from None
    return Which(places=named, **which)


@click.group()
def quarantine() -> None:
    """Records that no schema accepts: look at them, readmit or discard them. Nothing is ever deleted."""


@quarantine.command("list")
@_which
@json_option
def list_(as_json: bool, **which: Any) -> None:
    """What is there, by cause; accepted_now: what the next build takes out, as a schema came that accepts it."""
    with ledger_step() as store:
        history, head, decoded = log_reader.read_schema_history(), coverage.head()[0], store.decoded_cut()
        rows = held.summary(held.portions(_chosen(**which), history, decoded, head), history, decoded, head)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    show("quarantine", [{**row, "sample": shown(row["sample"])[: FEW * 3]} for row in rows])
    if accepted := sum(row["accepted_now"] for row in rows):
        click.echo(f"{accepted:,} records would now be accepted: the next build takes them out (`tidemark batch plan`)")


@quarantine.command("show")
@_which
@click.option("--limit", type=click.IntRange(1), default=FEW, show_default=True)
@json_option
def show_(limit: int, as_json: bool, **which: Any) -> None:
    """Single records, with their bytes and why no schema accepts them."""
    with ledger_step() as store:
        history, head = log_reader.read_schema_history(), coverage.head()[0]
        rows: list[dict[str, Any]] = []
        for portion in held.portions(_chosen(**which), history, store.decoded_cut(), head):
            rows += portion.slice(0, limit - len(rows)).to_pylist()
            if len(rows) >= limit:
                break
    told = [_told(row) for row in rows]
    if as_json:
        click.echo(json.dumps(told, indent=2, default=str))
        return
    for row in told:
        known = (f"{name:>14}  {printable(str(value))}" for name, value in row.items() if value is not None)
        click.echo("\n".join(known) + "\n")
    click.echo(f"{len(told)} records" + (", the first ones" if len(told) == limit else ""))


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A record for people: bytes as text, with what is no text spelled out."""
    headers = {one["key"]: (one["value"] or b"").decode(errors="backslashreplace") for one in row["headers"] or ()}
    place = {name: row[name] for name in ("lsn", "topic", "partition", "offset", "timestamp")}
    why = {name: row[name] for name in ("state", "event_type", "schema_version", "reason", "field", "detail")}
    return place | why | {"headers": headers or None, "key": _text(row["key"]), "value": _text(row["value"])}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


@quarantine.command()
@_which
@click.option("--read-topic", help="Read them as if they had been sent to this topic.")
@click.option("--read-version", type=click.IntRange(1), help="Read them by this version of their schema.")
@click.option("--set", "values", multiple=True, metavar="FIELD=JSON", help="Read a field as this value.")
@click.option("--rename", "names", multiple=True, metavar="OLD=NEW", help="Read a field under another name.")
@click.option("--drop", multiple=True, metavar="FIELD", help="Read them without a field.")
@click.option("--dry-run", is_flag=True, help="Only say what would be accepted.")
@of_somebody
def readmit(
    read_topic: str | None,
    read_version: int | None,
    values: tuple[str, ...],
    names: tuple[str, ...],
    drop: tuple[str, ...],
    dry_run: bool,
    reason: str,
    by: str,
    seconds: float,
    **which: Any,
) -> None:
    """Have quarantined records read by a rule; those that are facts by it count once, from the next publication on."""
    rule = Rule(read_topic, read_version, _values(values), _names(names), drop)
    if rule == Rule():
        raise click.UsageError("say how to read them; what a schema accepts by now comes out at the next build")
    said, asked, refused = Said(by, reason), list[Revision](), Counter[str]()
    with ledger_step() as store:
        history, head = log_reader.read_schema_history(), coverage.head()[0]
        for rejects in held.portions(_chosen(**which), history, store.decoded_cut(), head):
            some, others = revising.readmissions(held.undecided(rejects), rule, said, history, head)
            asked += some
            refused += others
        for why, count in refused.most_common():
            click.echo(f"{count:,} stay: {why}")
        ask_for(store, asked, seconds, dry_run=dry_run)


@quarantine.command()
@_which
@click.option("--dry-run", is_flag=True, help="Only say how many.")
@of_somebody
def discard(dry_run: bool, reason: str, by: str, seconds: float, **which: Any) -> None:
    """Have nobody ask about these records again, and no later schema accept them. They stay where they are."""
    said, asked = Said(by, reason), list[Revision]()
    with ledger_step() as store:
        history, head = log_reader.read_schema_history(), coverage.head()[0]
        for rejects in held.portions(_chosen(**which), history, store.decoded_cut(), head):
            rejects = held.undecided(rejects)
            places = zip(places_of(rejects), rejects["state"].to_pylist(), strict=True)
            asked += [said.of(Action.DISCARD, place) for place, state in places if state != DISCARDED]
        ask_for(store, asked, seconds, dry_run=dry_run)


def _values(given: Sequence[str]) -> dict[str, Any]:
    found = {}
    for name, _, text in (one.partition("=") for one in given):
        try:
            found[name] = json.loads(text)
        except ValueError:
            raise click.BadParameter(f"--set {name}: {shown(text)} is no JSON; a text needs its quotes") from None
    return found


def _names(given: Sequence[str]) -> dict[str, str]:
    if wrong := [one for one in given if not all(one.partition("="))]:
        raise click.BadParameter(f"--rename {wrong[0]}: write OLD=NEW")
    return {old: new for old, _, new in (one.partition("=") for one in given)}
