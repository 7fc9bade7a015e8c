"""`tidemark alarms`: what rings now, who knows of it, and what rang before.

Kafka, log, ledger, disk -> the ledger's alarms -> terminal, the DAG `speed_layer`, its notifiers. No JVM.
"""

import getpass
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from spark_jobs.cli.step import json_option, ledger_step
from spark_jobs.ledger.schema import Alarm
from spark_jobs.orchestration.interface import ALARM_RAISED, SPEED_SILENT
from spark_jobs.serving.formatting import printable

SHOWN = ("id", "name", "message", "raised_at", "cleared_at", "acknowledged_at", "acknowledged_by", "runbook")
NEWEST = 200


@click.group(invoke_without_command=True)
@click.option("--all", "every", is_flag=True, help=f"The newest {NEWEST}, also those that are cleared.")
@json_option
@click.pass_context
def alarms(ctx: click.Context, every: bool, as_json: bool) -> None:
    """Look what rings now, and show it with its runbook.

    Exit code 5 where an alarm rings that nobody has acknowledged, 4 where the speed application is silent or stalled,
    so that a restart may help.
    """
    if ctx.invoked_subcommand is not None:
        return
    from spark_jobs.speed.watch import look_once

    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # a broker that is away is an alarm, and no noise
    with ledger_step() as store:
        health = look_once(store)
        ringing = store.raised_alarms()
        rows = _rows(store.alarms(NEWEST) if every else ringing)
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=2))
    else:
        click.echo("\n".join(line for row in rows for line in _lines(row)) or "nothing rings")
    is_news = any(alarm.acknowledged_at is None for alarm in ringing)
    sys.exit(SPEED_SILENT if health["restart_may_help"] else ALARM_RAISED if is_news else 0)


def _rows(found: Iterable[Alarm]) -> list[dict[str, Any]]:
    return [{name: getattr(alarm, name) for name in SHOWN} for alarm in found]


def _lines(row: dict[str, Any]) -> Iterator[str]:
    """For people: since when, who sees to it, what, and where it says what to do."""
    cleared, by = row["cleared_at"], row["acknowledged_by"]
    until = f" until {cleared:%Y-%m-%d %H:%M:%S}" if cleared else ""
    seen = f", {by} sees to it" if by else ""
    yield f"{row['id']:>5}  {row['name']}: {row['raised_at']:%Y-%m-%d %H:%M:%S}{until}{seen}"
    yield f"       {printable(row['message'])}"
    yield f"       {row['runbook']}"


@alarms.command()
@click.argument("alarm_id", metavar="ID", type=int)
@click.option("--by", default=getpass.getuser, help="Who sees to it; by default the user of this machine.")
def ack(alarm_id: int, by: str) -> None:
    """Say that you see to alarm ID: it rings on, but makes no run red any more."""
    with ledger_step() as store:
        alarm = store.acknowledge_alarm(alarm_id, by)
    click.echo(f"{alarm.name}: {alarm.acknowledged_by} sees to it; {alarm.runbook}")


@alarms.command(hidden=True)
def untold() -> None:
    """For Airflow: the alarms of which people were not told that they are raised, or cleared, as one line of JSON."""
    with ledger_step() as store:
        click.echo(json.dumps(_rows(store.untold_alarms()), default=str))


@alarms.command(hidden=True)
@click.argument("alarm_id", type=int)
@click.option("--cleared", is_flag=True, help="Told as one that is cleared.")
def told(alarm_id: int, cleared: bool) -> None:
    """For Airflow: people know of it."""
    with ledger_step() as store:
        store.record_alarm_told(alarm_id, is_cleared=cleared)
