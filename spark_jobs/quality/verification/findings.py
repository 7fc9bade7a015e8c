"""What a check found: a sentence that holds, does not hold, or could not be looked at.

check -> Finding -> table, JSON, exit code.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

SHOWN = 10
"""Breaches named in full; the rest are counted."""


class State(StrEnum):
    HOLDS = "holds"
    BREACH = "breach"
    UNABLE = "unable"  # it could not be looked at: neither good nor bad news
    ABSENT = "nothing yet"  # there is nothing to look at, by nature


class Unable(Exception):
    """A check that cannot look; the text says what is missing."""


class Absent(Exception):
    """There is nothing that the law speaks of; the text says why."""


@dataclass(frozen=True)
class Finding:
    """`checked`: how many things were compared; a check that compared nothing never says HOLDS."""

    invariant: str
    law: str
    state: State
    checked: int = 0
    unit: str = ""
    breaches: int = 0
    first: tuple[str, ...] = ()
    note: str = ""
    seconds: float = field(default=0.0, compare=False)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def finding(
    invariant: str,
    law: str,
    checked: int,
    unit: str,
    breaches: Iterable[str],
    *,
    count: int | None = None,
    note: str = "",
) -> Finding:
    """HOLDS where nothing breaches and something was compared.

    `count`: how many breaches there are where `breaches` names only the first.
    """
    named = tuple(breaches)
    count = len(named) if count is None else count
    state = State.BREACH if count else State.HOLDS if checked else State.ABSENT
    return Finding(invariant, law, state, checked, unit, count, named[:SHOWN], note)


def looked(invariant: str, law: str, check: Callable[[], Finding]) -> Finding:
    """Run one check and time it. Whatever keeps it from looking becomes a finding of its own, and hides no other."""
    started = time.perf_counter()
    try:
        found = check()
    except Absent as reason:
        found = Finding(invariant, law, State.ABSENT, note=str(reason))
    except Unable as reason:
        found = Finding(invariant, law, State.UNABLE, note=str(reason))
    except Exception as error:
        reason_given = str(error).splitlines()[0] if str(error) else "no reason given"
        found = Finding(invariant, law, State.UNABLE, note=f"{type(error).__name__}: {reason_given}")
    return replace(found, invariant=invariant, law=law, seconds=round(time.perf_counter() - started, 2))
