"""Pins: moments of publications that are kept readable.

begun -> its names are made -> dropped. Retention keeps what a pin reads from its row on.
"""

from datetime import datetime

from sqlalchemy import select

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Pin, Publication


class Pins(Sessions):
    def begin_pin(
        self, name: str, publication_id: int, head: int, now: datetime, keep_until: datetime | None = None
    ) -> Pin:
        """Record the pin before its views exist, so that retention keeps what they will read."""
        with self.write() as session:
            if session.get(Pin, name) is not None:
                raise LedgerError(f"the pin {name} exists already; drop it first or choose another name")
            if session.get_one(Publication, publication_id).state == "expired":
                raise LedgerError(f"publication {publication_id} has expired and cannot be pinned any more")
            pin = Pin(name=name, publication_id=publication_id, head=head, now=now, keep_until=keep_until)
            session.add(pin)
        return pin

    def set_pin(self, name: str, state: str) -> Pin:
        """How far the pin's names are made, or are gone."""
        with self.write() as session:
            pin = session.get_one(Pin, name)
            pin.state = state
        return pin

    def drop_pin(self, name: str) -> None:
        with self.write() as session:
            pin = session.get(Pin, name)
            if pin is None:
                raise LedgerError(f"no pin is called {name}; `tidemark pin list` shows them")
            session.delete(pin)

    def pin(self, name: str) -> Pin | None:
        return self.get(Pin, name)

    def pins(self) -> list[Pin]:
        return self.all(select(Pin).order_by(Pin.created_at))
