"""What the options of `tidemark replay plan` mean: views, days, and ranges of lsns.

options -> names, days, ranges; click.UsageError where two of them do not go together.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from spark_jobs.batch.plan import Origin
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger.store import LedgerError
from spark_jobs.orchestration.interface import DAY
from spark_jobs.registry.views import Views
from spark_jobs.replay.wanted import in_quarantine
from spark_jobs.storage import coverage
from spark_jobs.storage.lsn_ranges import Range

NEEDED = {"to_day": "from_day", "to_lsn": "from_lsn", "to_time": "from_time", "causes": "quarantined"}
"""Options that say nothing without another."""


def refuse_what_goes_with_nothing(origin: Origin, views: tuple[str, ...], where: Mapping[str, Any]) -> None:
    """What would be ignored otherwise, and more done again than was meant."""
    if origin == "raw" and views:
        raise click.UsageError(
            "--view goes with --from facts: facts that come out otherwise change every view over them"
        )
    if where["event_types"] and origin == "raw" and not where["quarantined"]:
        raise click.UsageError("--event-type goes with --from facts or --quarantined: an lsn has records of all types")
    for name, needed in NEEDED.items():
        if where[name] and not where[needed]:
            option = {"causes": "because"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{option} goes with --{needed.replace('_', '-')}")


def views(known: Views, named: tuple[str, ...], event_types: tuple[str, ...]) -> tuple[str, ...]:
    """Names of views: those named, and those over the event types."""
    if unknown := {*event_types} - {*project_contracts().event_types}:
        raise LedgerError(f"no event type is called {', '.join(sorted(unknown))}")
    over = {view.name for view in known if {*event_types} & {*view.event_types}}
    if event_types and not over:
        raise LedgerError(f"no view is over {', '.join(event_types)}")
    return tuple(sorted({*named, *over}))


def days(from_day: datetime | None, to_day: datetime | None, **_: Any) -> tuple[str, ...]:
    """The days of the facts, in ISO 8601; none: all."""
    if from_day is None:
        return ()
    last = to_day or from_day
    if last < from_day:
        raise click.UsageError(f"--to-day {last:%Y-%m-%d} lies before --from-day {from_day:%Y-%m-%d}")
    return tuple(f"{from_day + timedelta(days=n):{DAY}}" for n in range((last - from_day).days + 1))


def lsns(
    from_lsn: int | None,
    to_lsn: int | None,
    from_time: datetime | None,
    to_time: datetime | None,
    quarantined: bool,
    causes: tuple[str, ...],
    event_types: tuple[str, ...],
    **_: Any,
) -> Iterator[Range]:
    """What is decoded again: first and last lsn of each range; they may overlap."""
    if from_lsn is not None:
        if (to_lsn or from_lsn) < from_lsn:
            raise click.UsageError(f"--to-lsn {to_lsn} lies before --from-lsn {from_lsn}")
        yield from_lsn, to_lsn or from_lsn
    landed = coverage.landed_between(from_time, to_time or datetime.now(UTC)) if from_time else None
    yield from [landed] if landed else []
    if quarantined:
        topics = [project_contracts().of(name).topic for name in event_types]
        yield from in_quarantine(topics, causes)
