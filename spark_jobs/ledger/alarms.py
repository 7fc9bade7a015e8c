"""Alarms as rows: raised, acknowledged by somebody, cleared, and whether people were told of it.

what rings now (name -> message) -> rows. Several processes may look at once: whoever comes first writes the row.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from sqlalchemy import select

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Alarm

RUNBOOK = "docs/runbooks/alarms.md"
RAISED = select(Alarm).where(Alarm.cleared_at.is_(None)).order_by(Alarm.id)


def kind_of(name: str) -> str:
    """What a name says before its subject: `lag` of `lag: order_placed`."""
    return name.partition(":")[0]


def runbook_of(name: str) -> str:
    """Page and section that say what to do."""
    return f"{RUNBOOK}#{kind_of(name).replace(' ', '-')}"


class Alarms(Sessions):
    def settle_alarms(self, ringing: Mapping[str, str], unknown: Collection[str] = ()) -> None:
        """Raise what rings and is no row yet, clear what rings no more; a message that changes is the same alarm.

        unknown: kinds of which nobody could look whether they ring; their rows stay.
        """
        if not _differences(self.all(RAISED), ringing, unknown):  # the common case costs a read, not the write lock
            return
        with self.write() as session:
            raised = {alarm.name: alarm for alarm in session.scalars(RAISED)}
            for name in _differences(raised.values(), ringing, unknown):
                if name not in ringing:
                    raised[name].cleared_at = datetime.now(UTC)
                elif name in raised:
                    raised[name].message = ringing[name]
                else:
                    session.add(Alarm(name=name, message=ringing[name], runbook=runbook_of(name)))

    def raised_alarms(self) -> list[Alarm]:
        """Those that ring, the oldest first."""
        return self.all(RAISED)

    def alarms(self, newest: int) -> list[Alarm]:
        """The newest, cleared or not."""
        return self.all(select(Alarm).order_by(Alarm.id.desc()).limit(newest))

    def acknowledge_alarm(self, alarm_id: int, by: str) -> Alarm:
        """Somebody sees to it; the first one's name stays."""
        with self.write() as session:
            alarm = session.get(Alarm, alarm_id)
            if alarm is None:
                raise LedgerError(f"there is no alarm {alarm_id}; `tidemark alarms` shows them")
            alarm.acknowledged_at = alarm.acknowledged_at or datetime.now(UTC)
            alarm.acknowledged_by = alarm.acknowledged_by or by
            return alarm

    def untold_alarms(self) -> list[Alarm]:
        """Those of which people were not told that they were raised, or that they are cleared; the oldest first."""
        is_news = Alarm.raise_told_at.is_(None) | (Alarm.cleared_at.is_not(None) & Alarm.clearing_told_at.is_(None))
        return self.all(select(Alarm).where(is_news).order_by(Alarm.id))

    def record_alarm_told(self, alarm_id: int, *, is_cleared: bool) -> None:
        """People know of it as it was shown: raised, or `is_cleared` by now."""
        with self.write() as session:
            alarm = session.get_one(Alarm, alarm_id)
            alarm.raise_told_at = alarm.raise_told_at or datetime.now(UTC)
            if is_cleared:
                alarm.clearing_told_at = datetime.now(UTC)


def _differences(raised: Collection[Alarm], ringing: Mapping[str, str], unknown: Collection[str]) -> set[str]:
    """Names whose row is not as it should be."""
    told = {alarm.name: alarm.message for alarm in raised if kind_of(alarm.name) not in unknown}
    judged = {name: text for name, text in ringing.items() if kind_of(name) not in unknown}
    return {name for name in told.keys() | judged.keys() if told.get(name) != judged.get(name)}
