"""Leases: what one process alone may do for a while, among all processes and machines that share the ledger.

A holder that stops (paused, cut off) loses its lease after `SECONDS`, and learns so at its next renewal.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, update

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Lease

log = logging.getLogger("tidemark.ledger")

SECONDS = 60.0
BEATS = 6
"""How often a lease that is kept alive is renewed before it would end."""
PATIENCE_SECONDS = 180.0
ASK_SECONDS = 0.1
PROCESS = str(uuid.uuid4())


class Busy(LedgerError):
    """Another process is at it: try again later."""


class LeaseLost(LedgerError):
    """Another process has taken over what this one held."""


@dataclass(frozen=True)
class Held:
    """A lease that is held; `renew` it before each thing that only its holder may do. The next has a greater number."""

    leases: "Leases"
    name: str
    holder: str
    number: int

    def renew(self) -> None:
        """Raises LeaseLost."""
        if self.leases.take(self.name, self.holder, renews=True) is None:
            raise LeaseLost(f"{self.name}: another process has taken over, as this one did nothing for {SECONDS:.0f} s")


class Leases(Sessions):
    @contextmanager
    def holding(self, name: str, patience: float = PATIENCE_SECONDS, holder: str | None = None) -> Iterator[Held]:
        """Hold the lease, after waiting for it; Busy if it does not come free within `patience` seconds.

        holder: a name that outlives the process, for one that goes on where its predecessor of that name died.
        """
        holder, deadline = holder or f"{PROCESS}.{uuid.uuid4()}", time.monotonic() + patience
        while (number := self.take(name, holder)) is None:
            if time.monotonic() > deadline:
                other = self.get(Lease, name)
                by = "" if other is None else f" ({other.holder})"
                raise Busy(f"{name}: another process{by} has been at it for {patience:.0f} s; try again later")
            time.sleep(ASK_SECONDS)
        try:
            yield Held(self, name, holder, number)
        finally:
            self._give_back(Lease.holder == holder)

    def take(self, name: str, holder: str, *, renews: bool = False) -> int | None:
        """Take the lease, or prolong one's own; its number, None if another has it. `renews`: not one that was lost."""
        now = datetime.now(UTC)
        with self.write() as session:
            lease = session.get(Lease, name)
            is_own = lease is not None and lease.holder == holder
            if not is_own and (renews or (lease is not None and lease.until > now)):
                return None
            number = 1 if lease is None else lease.number + (not is_own)
            session.merge(Lease(name=name, holder=holder, number=number, until=now + timedelta(seconds=SECONDS)))
        return number

    def give_back_all(self) -> None:
        """Give back what this process holds, where it ends without leaving its blocks."""
        self._give_back(Lease.holder.startswith(PROCESS))

    def _give_back(self, own: ColumnElement[bool]) -> None:
        """The row stays, as the next holder gets the next number."""
        with self.write() as session:
            session.execute(update(Lease).where(own).values(until=datetime.now(UTC)))


@contextmanager
def kept_alive(held: Held, beat: Callable[[], None]) -> Iterator[Held]:
    """Renew the lease, and call `beat`, for as long as this process lives and the block lasts."""
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(SECONDS / BEATS):
            try:
                held.renew()
                beat()
            except LeaseLost:
                return  # whoever writes next under it is told
            except Exception:
                log.exception("%s: a sign of life is missing in the ledger", held.name)

    thread = threading.Thread(target=keep, name="lease", daemon=True)
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()
