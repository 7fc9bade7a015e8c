"""`tidemark topics` and `tidemark send`: make the topics, send records by hand.

Exit codes: 0 done, all acknowledged; 1 Kafka refused or cannot be reached; 2 wrong usage.
"""

import json
from collections.abc import Iterable, Sequence

import click

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import topics
from spark_jobs.sample.block import facts
from spark_jobs.sample.commands import _errors
from spark_jobs.sample.producer import Producer, Sent


@click.group("topics")
def topics_() -> None:
    """Kafka's topics."""


@topics_.command()
def create() -> None:
    """Create the topics of all event types that do not exist yet."""
    with _errors():
        created = topics.create(project_contracts())
    click.echo(f"created: {', '.join(created)}" if created else "every topic exists")


@click.command()
@click.argument("topic")
@click.option("--key", help="Key of each record. Default: the event's key field, where a value has one.")
@click.option("--file", "source", type=click.File("rb"), default="-", help="Default: standard input.")
@click.option("--whole", is_flag=True, help="The input is one value, line breaks and all.")
@click.option("--null", "is_null", is_flag=True, help="One record without value for --key: removes the key.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE")
def send(
    topic: str, key: str | None, source: Iterable[bytes], whole: bool, is_null: bool, headers: Sequence[str]
) -> None:
    """Send records by hand: each line of the input is the value of one, as it is, good or bad.

    They stand in no producer ledger, as a stranger's would. Prints where each of them is.
    """
    if is_null and key is None:
        raise click.UsageError("--null needs --key")
    values = [None] if is_null else [b"".join(source)] if whole else [line.removesuffix(b"\n") for line in source]
    keys = [key.encode() if key is not None else _key(topic, value) for value in values]
    named = [(name, value.encode()) for name, _, value in (header.partition("=") for header in headers)]
    with _errors(), Producer(_print_places, {topic: named}) as producer:
        for i, value in enumerate(values):  # one by one: printed in the order of the input
            producer.send(facts(topic, keys[i : i + 1], [value]))
            producer.flush()


def _key(topic: str, value: bytes | None) -> bytes | None:
    """The event's key, as its producer would have set it; None where it has none."""
    event_types = project_contracts().by_topic(topic)
    try:
        contract = project_contracts().of(event_types[0])
        field = contract.flat(json.loads(value or b""))[contract.key]
        if contract.nested:
            field = json.dumps({contract.key: field}, separators=(",", ":"))
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return None if field is None else str(field).encode("utf-8", "replace")


def _print_places(sent: Sent) -> None:
    click.echo(f"{sent.block.topic} partition {sent.partition} offset {sent.offset}")
