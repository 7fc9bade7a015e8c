"""`tidemark speed`: what the speed application does, and what to do when it stopped.

ledger (heartbeat, requests) -> terminal. No JVM.
"""

import json
import sys
from contextlib import closing
from typing import Any

import click

from spark_jobs.cli.step import json_option, show
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger import store as ledger
from spark_jobs.orchestration.interface import SPEED_SILENT
from spark_jobs.speed.status import health


@click.group()
def speed() -> None:
    """The speed layer."""


@speed.command()
@json_option
def status(as_json: bool) -> None:
    """Heartbeat, lsn, lag, times of the last micro-batch.

    Exit code 1 when there is an alarm, 4 when the application is silent or stalled, so that a restart may help.
    """
    state = health(ledger.open())
    if as_json:
        click.echo(json.dumps(state, indent=2, default=str))
    else:
        show("speed layer", [{"what": what, "value": str(value)} for what, value in _lines(state).items()])
    sys.exit(SPEED_SILENT if state["restart_may_help"] else int(bool(state["alarms"])))


def _lines(state: dict[str, Any]) -> dict[str, Any]:
    shown = {name: state.get(name) for name in ("state", "epoch", "lsn", "lag", "age_seconds")}
    last = {f"last batch: {name}": value for name, value in state.get("last_batch", {}).items()}
    return shown | last | {f"ALARM {name}": text for name, text in state["alarms"].items()}


@speed.command()
@click.option("--accept", is_flag=True, help="Accept the loss that this command shows, and let the stream go on.")
def recover(accept: bool) -> None:
    """Show the hole that stopped the stream, and go on past it with --accept.

    Nothing is repaired silently: what is lost is written into the log as an entry of its own. Only what was shown is
    accepted: if more is lost by the next start, the stream stops again.
    """
    from spark_jobs.messaging.broker import Broker
    from spark_jobs.speed import continuity, recovery
    from spark_jobs.speed.land import log_end

    with closing(Broker(project_contracts().topics)) as broker:
        topic_ids, partitions = broker.partitions()
        losses = continuity.losses(log_end(), broker.available(partitions), topic_ids)
    if not losses:
        click.echo("The log continues where Kafka is: nothing to recover.")
        return
    for loss in losses:
        click.echo(str(loss))
    if not accept:
        click.echo("Nothing was changed. `tidemark speed recover --accept` goes on without what is lost.")
        sys.exit(1)
    recovery.accept(ledger.open(), losses)
    click.echo("Accepted; the speed application goes on at its next start, within seconds.")
