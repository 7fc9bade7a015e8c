"""`tidemark topics`, `send` and `schemas`: make the topics, send records by hand, show what records may say.

Exit codes: 0 done, all acknowledged; 1 Kafka refused or cannot be reached, or a schema file no longer says what it said
when it came in force; 2 wrong usage.
"""

import json
from collections.abc import Sequence
from typing import BinaryIO

import click
from kafka.errors import KafkaError

from spark_jobs.cli.step import form_option, refusing, show_answer
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import topics
from spark_jobs.messaging.producer import Producer, Record, SendError
from spark_jobs.messaging.security import KafkaRefused
from spark_jobs.messaging.topics import TopicsError
from spark_jobs.serving.formatting import Answer, Format

REFUSALS = (SendError, TopicsError, KafkaRefused, KafkaError, OSError)
_KINDS = {"schema": "STRING", "in_force_from": "BIGINT", "topic": "STRING", "key": "STRING", "owner": "STRING"}


@click.group("topics")
def topics_() -> None:
    """Kafka's topics."""


@topics_.command()
def create() -> None:
    """Create the topics of all event types that do not exist yet."""
    with refusing(*REFUSALS):
        created = topics.create(project_contracts())
    click.echo(f"created: {', '.join(created)}" if created else "every topic exists")


@click.command()
@click.argument("topic")
@click.option("--key", help="Key of each record. Default: the event's key field, where a value has one.")
@click.option("--file", "source", type=click.File("rb"), default="-", help="Default: standard input.")
@click.option("--whole", is_flag=True, help="The input is one value, line breaks and all.")
@click.option("--null", "is_null", is_flag=True, help="One record without value for --key: removes the key.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE")
@click.option("--quiet", is_flag=True, help="Print how many records were sent, and not where each is.")
def send(
    topic: str, key: str | None, source: BinaryIO, whole: bool, is_null: bool, headers: Sequence[str], quiet: bool
) -> None:
    """Send records by hand: each line of the input is the value of one, as it is, good or bad.

    They stand in no producer ledger, as a stranger's would. Prints where each of them is, once it is there.
    """
    if is_null and key is None:
        raise click.UsageError("--null needs --key")
    values = [None] if is_null else [b"".join(source)] if whole else (line.removesuffix(b"\n") for line in source)
    named = tuple((name, value.encode()) for name, _, value in (header.partition("=") for header in headers))
    records = (Record(topic, key.encode() if key is not None else _key(topic, value), value, named) for value in values)
    with refusing(*REFUSALS), Producer() as producer:
        count = producer.send(records, (lambda sent: None) if quiet else click.echo)
    if quiet:
        click.echo(f"{topic}: {count:,} records acknowledged")


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


@click.command()
@form_option
def schemas(form: Format) -> None:
    """Every schema, and from which lsn on it is in force; nothing there: from the speed layer's next start on."""
    from spark_jobs.storage import log_reader

    lsns = {entry.name: entry.lsn for entry in log_reader.read_schema_history().entries}
    known = project_contracts().every
    named = [(f"{contract.event_type}.v{contract.version}", contract) for contract in known]
    rows = [(name, lsns.get(name), contract.topic, contract.key, contract.owner) for name, contract in named]
    show_answer(Answer(tuple(_KINDS), tuple(_KINDS.values()), rows), form)
