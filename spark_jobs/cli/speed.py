"""`tidemark speed`: what the speed application does, and what to do when it stopped.

ledger (heartbeat, requests) -> terminal. No JVM.
"""

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger import store as ledger
from spark_jobs.orchestration.interface import SPEED_SILENT
from spark_jobs.speed.status import health


@click.group()
def speed() -> None:
    """The speed layer."""


@speed.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(as_json: bool) -> None:
    """Heartbeat, lsn, lag, times of the last micro-batch.

    Exit code 1 when there is an alarm, 4 when the application is silent or stalled, so that a restart may help.
    """
    found = health()
    if as_json:
        click.echo(json.dumps(found, indent=2, default=str))
    else:
        _show(found)
    sys.exit(SPEED_SILENT if found["restart_may_help"] else int(bool(found["alarms"])))


def _show(found: dict[str, Any]) -> None:
    table = Table("what", "value", title="speed layer")
    last = found.get("last_batch", {})
    shown = {name: found.get(name) for name in ("state", "epoch", "lsn", "lag", "age_seconds")}
    shown |= {f"last batch: {name}": value for name, value in last.items()}
    for name, value in (shown | {f"ALARM {k}": v for k, v in found["alarms"].items()}).items():
        table.add_row(name, str(value))
    Console().print(table)


@speed.command()
@click.option("--accept", is_flag=True, help="Accept the loss that this command shows, and let the stream go on.")
def recover(accept: bool) -> None:
    """Show the hole that stopped the stream, and go on past it with --accept.

    Nothing is repaired silently: what is lost is written into the log as an entry of its own.
    """
    losses = _losses()
    if not losses:
        click.echo("The log continues where Kafka is: nothing to recover.")
        return
    for loss in losses:
        click.echo(loss)
    if not accept:
        click.echo("Nothing was changed. `tidemark speed recover --accept` goes on without what is lost.")
        sys.exit(1)
    store = ledger.open()
    store.request("recover")
    click.echo("Accepted; the speed application goes on at its next start, within seconds.")


def _losses() -> list[str]:
    from spark_jobs.messaging.broker import Broker
    from spark_jobs.speed.continuity import recover as recovery
    from spark_jobs.speed.land import log_end

    broker = Broker(project_contracts().topics)
    try:
        topic_ids, partitions = broker.partitions()
        return recovery(log_end(), broker.available(partitions), topic_ids)[1]
    finally:
        broker.close()
