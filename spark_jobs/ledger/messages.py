"""What processes tell each other through the ledger: heartbeats, requests to the speed application, epochs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select, update

from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.schema import AlertsSent, Epoch, Heartbeat, Request


class Messages(Sessions):
    def beat(self, component: str, payload: dict[str, Any] | None = None) -> None:
        """Leave a sign of life; one row per component."""
        with self.write() as session:
            session.merge(Heartbeat(component=component, at=datetime.now(UTC), payload=payload or {}))

    def heartbeat(self, component: str) -> Heartbeat | None:
        return self.get(Heartbeat, component)

    def request(self, kind: str, **arguments: Any) -> int:
        """Ask the speed application for something; a request that still waits is not written twice."""
        with self.write() as session:
            waiting = session.scalars(select(Request).where(Request.kind == kind, Request.state == "pending"))
            for same in waiting:
                if same.arguments == arguments:
                    return same.id
            asked = Request(kind=kind, arguments=arguments)
            session.add(asked)
            session.flush()
            return asked.id

    def next_request(self, kind: str) -> Request | None:
        """Take the oldest waiting request of a kind, or None."""
        query = select(Request).where(Request.state == "pending", Request.kind == kind).order_by(Request.id).limit(1)
        if self.first(query) is None:  # the common case costs a read, not the write lock
            return None
        with self.write() as session:
            taken = session.scalars(query.with_for_update(skip_locked=True)).first()
            if taken is not None:
                taken.state = "taken"
            return taken

    def answer_request(self, request_id: int, answer: dict[str, Any] | None = None, *, failed: bool = False) -> None:
        with self.write() as session:
            request = session.get_one(Request, request_id)
            request.state = "failed" if failed else "done"
            request.answer = answer or {}
            request.answered_at = datetime.now(UTC)

    def answered(self, request_id: int) -> Request | None:
        """The request, once it is answered."""
        request = self.get(Request, request_id)
        return request if request is not None and request.answered_at is not None else None

    def drop_requests(self, kind: str, reason: str) -> None:
        """Answer what still waits: it was asked for a state of things that is over."""
        with self.write() as session:
            waiting = update(Request).where(Request.kind == kind, Request.state == "pending")
            session.execute(waiting.values(state="failed", answer={"error": reason}, answered_at=datetime.now(UTC)))

    def reopen_requests(self) -> None:
        """Put back, at a start, the requests that the application's last life took and did not answer."""
        with self.write() as session:
            session.execute(update(Request).where(Request.state == "taken").values(state="pending"))

    def alerts_sent(self) -> dict[str, int]:
        """View column -> the lsn up to which its alerts are sent."""
        return {row.view: row.lsn for row in self.all(select(AlertsSent))}

    def record_alerts_sent(self, lsns: Mapping[str, int]) -> None:
        with self.write() as session:
            for view, lsn in lsns.items():
                session.merge(AlertsSent(view=view, lsn=lsn))

    def last_epoch(self) -> int:
        """The newest epoch; 0 before the first one."""
        return max((epoch.id for epoch in self.all(select(Epoch).order_by(Epoch.id.desc()).limit(1))), default=0)

    def record_epoch(self, epoch: int, after_lsn: int) -> None:
        """Keep that an epoch has begun on the hot tables, where the log ended at `after_lsn`."""
        with self.write() as session:
            session.merge(Epoch(id=epoch, after_lsn=after_lsn, reason="start"))
