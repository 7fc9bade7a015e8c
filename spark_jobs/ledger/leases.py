"""Leases: what one process alone may do for a while, among all processes and machines that share the ledger.

A holder that stops (paused, cut off) loses its lease after `SECONDS`, and learns so at its next renewal.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Lease

SECONDS = 60.0
PATIENCE_SECONDS = 180.0
ASK_SECONDS = 0.1


class LeaseLost(LedgerError):
    """Another process has taken over what this one held."""


@dataclass(frozen=True)
class Held:
    """A lease that is held; `renew` it before each thing that only its holder may do."""

    leases: "Leases"
    name: str
    holder: str

    def renew(self) -> None:
        """Raises LeaseLost."""
        if not self.leases.take(self.name, self.holder, renews=True):
            raise LeaseLost(f"{self.name}: another process has taken over, as this one did nothing for {SECONDS:.0f} s")


class Leases(Sessions):
    @contextmanager
    def holding(self, name: str, patience: float = PATIENCE_SECONDS) -> Iterator[Held]:
        """Hold the lease, after waiting for it; LedgerError if it does not come free within `patience` seconds."""
        held, deadline = Held(self, name, str(uuid.uuid4())), time.monotonic() + patience
        while not self.take(name, held.holder):
            if time.monotonic() > deadline:
                raise LedgerError(f"{name}: another process has been at it for {patience:.0f} s; try again later")
            time.sleep(ASK_SECONDS)
        try:
            yield held
        finally:
            self._give_back(held)

    def take(self, name: str, holder: str, *, renews: bool = False) -> bool:
        """Take the lease, or prolong one's own; whether it is the holder's now. `renews`: not one that was lost."""
        now = datetime.now(UTC)
        with self.write() as session:
            lease = session.get(Lease, name)
            is_own = lease is not None and lease.holder == holder
            if not is_own and (renews or (lease is not None and lease.until > now)):
                return False
            session.merge(Lease(name=name, holder=holder, until=now + timedelta(seconds=SECONDS)))
        return True

    def _give_back(self, held: Held) -> None:
        with self.write() as session:
            lease = session.get(Lease, held.name)
            if lease is not None and lease.holder == held.holder:
                session.delete(lease)
