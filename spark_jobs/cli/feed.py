"""`tidemark generate`, `import`, `topics`, `send`: put events into Kafka.

options -> blocks -> producer -> Kafka, and the producer ledger; progress -> terminal

Exit codes: 0 all sent and acknowledged, also when stopped by a signal; 1 Kafka did not take everything.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from kafka.errors import KafkaError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs import contracts
from spark_jobs.feed import generate as town
from spark_jobs.feed import nycflights, pace, topics
from spark_jobs.feed.batches import Header
from spark_jobs.feed.block import Block, facts
from spark_jobs.feed.ledger import Ledger, new_run
from spark_jobs.feed.producer import Producer, SendError, Sent
from spark_jobs.feed.topics import TopicsError

LINE_EVERY_SECONDS = 10.0
STOP_SECONDS = 8.0  # for the last acknowledgements after a signal; the supervisor waits 10
SHARE = click.FloatRange(0, 1)

Send = Callable[[Block], None]


@click.command()
@click.option("--seed", type=int, default=42, show_default=True)
@click.option("--rate", type=click.FloatRange(0, min_open=True), default=200.0, show_default=True,
              help="Events a second, in the town's time.")  # fmt: skip
@click.option("--events", type=click.IntRange(0), help="End after so many, sent as fast as possible. Default: go on.")
@click.option("--paced", is_flag=True, help="With --events: send each when it is due, as without --events.")
@click.option("--start", type=click.DateTime(), help="The first moment, UTC. Default: so that it ends or is now.")
@click.option("--late-share", type=SHARE, default=0.01, show_default=True, help="Happened a minute to days ago.")
@click.option("--late-max-days", type=click.FloatRange(0.001), default=2.0, show_default=True)
@click.option("--duplicate-share", type=SHARE, default=0.01, show_default=True, help="Sent before, byte for byte.")
@click.option("--out-of-order-share", type=SHARE, default=0.05, show_default=True, help="Happened 1 to 30 s ago.")
@click.option("--malformed-share", type=SHARE, default=0.002, show_default=True, help="No schema accepts them.")
def generate(
    seed: int,
    rate: float,
    events: int | None,
    paced: bool,
    start: datetime | None,
    late_share: float,
    late_max_days: float,
    duplicate_share: float,
    out_of_order_share: float,
    malformed_share: float,
) -> None:
    """Play the town: a market, a shop and its web site, payments, buses, a ski resort, people with watches.

    The same options give the same records: keys, bytes, headers, order.
    """
    is_paced = paced or events is None
    past = 0.0 if is_paced or events is None else town.duration(events, rate)
    start_ms = int((start.replace(tzinfo=UTC).timestamp() if start else time.time() - past) * 1000)
    plan = town.Plan(
        seed, start_ms, rate, late_share, late_max_days, duplicate_share, out_of_order_share, malformed_share
    )
    stream = town.blocks(plan, contracts.load(), events)
    with _feeding(f"town-{seed}", plan.headers(contracts.load()), events) as (send, stop):
        if is_paced:
            pace.paced(stream, send, stop, start_ms)
        else:
            pace.fast(stream, send, stop)


@click.group("import")
def import_() -> None:
    """Send real data as events."""


@import_.command("nycflights13")
@click.option("--limit", type=click.IntRange(1), help="Only the first so many events.")
def flights(limit: int | None) -> None:
    """Every flight that left New York in 2013: 693,575 events.

    Event ids are derived from the flights, so a second import counts nothing twice: all its records are duplicates.
    """
    with _feeding(nycflights.NAME, nycflights.headers(contracts.load()), limit or nycflights.EVENTS) as (send, stop):
        pace.fast(nycflights.blocks(limit), send, stop)


@click.group("topics")
def topics_() -> None:
    """Kafka's topics."""


@topics_.command()
def create() -> None:
    """Create the topics of all event types that do not exist yet."""
    with _errors():
        created = topics.create(contracts.load())
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
    event_types = contracts.load().by_topic(topic)
    try:
        contract = contracts.load().of(event_types[0])
        field = contract.flat(json.loads(value or b""))[contract.key]
        if contract.nested:
            field = json.dumps({contract.key: field}, separators=(",", ":"))
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return None if field is None else str(field).encode("utf-8", "replace")


def _print_places(sent: Sent) -> None:
    click.echo(f"{sent.block.topic} partition {sent.partition} offset {sent.offset}")


@contextmanager
def _feeding(
    name: str, headers: Mapping[str, Sequence[Header]], total: int | None
) -> Iterator[tuple[Send, threading.Event]]:
    """Topics, ledger, producer, progress, and a stop by signal; leaves when all is acknowledged and written down."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _errors(), _progress(name, total) as show:
        topics.create(contracts.load())
        with Ledger(new_run(name)) as ledger, Producer(ledger.add, headers) as producer:

            def sending(block: Block) -> None:
                producer.send(block)
                show(producer.records)

            yield sending, stop
            producer.flush(*([STOP_SECONDS] if stop.is_set() else []))
            show(producer.records)
    unlisted = f", and {producer.unlisted:,} without a known offset" if producer.unlisted else ""
    click.echo(f"{name}: {producer.records:,} records acknowledged{unlisted}")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (SendError, TopicsError, KafkaError, contracts.ContractError, OSError) as error:
        click.echo(f"tidemark: {error}", err=True)
        sys.exit(1)


@contextmanager
def _progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar where a person looks on; elsewhere a line now and then."""
    if not Console().is_terminal:
        yield _lines(name, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda sent: bar.update(task, completed=sent)


def _lines(name: str, total: int | None) -> Callable[[int], None]:
    shown = [time.monotonic()]

    def show(sent: int) -> None:
        if time.monotonic() - shown[0] >= LINE_EVERY_SECONDS:
            shown[0] = time.monotonic()
            click.echo(f"{name}: {sent:,} {f'of {total:,} ' if total else ''}records acknowledged")

    return show
