"""By which schemas a record is read, said a second time: for the oracle, from the log's own rows.

rows of the log that say from which lsn on a schema is in force -> Times -> the event of a record, or NoEvent
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from spark_jobs.sample.reference_decoder import verdict
from spark_jobs.sample.reference_decoder.json_text import NoEvent


@dataclass(frozen=True)
class Times:
    """`begun`: (lsn, names of all schemas in force from it on), ascending; none: always all that there are.

    cut: up to it a record that its time's schemas refuse is read once more, by those of the cut.
    """

    begun: Sequence[tuple[int, frozenset[str]]] = ()
    cut: int = 0

    def judged(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The event of one record, as `verdict.judged`. Raises NoEvent, for the first reason."""
        lsn = record.get("lsn", 0)
        try:
            return verdict.judged(record, self._at(lsn))
        except NoEvent as refused:
            if lsn < self.cut and self._at(self.cut) != self._at(lsn):
                try:
                    return verdict.judged(record, self._at(self.cut))
                except NoEvent:
                    pass
            raise refused from None

    def read(self, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The event of one record, or None."""
        try:
            return self.judged(record)
        except NoEvent:
            return None

    def _at(self, lsn: int) -> verdict.InForce:
        place = bisect_right(self.begun, lsn, key=lambda one: one[0])
        if not self.begun:
            return None
        return self.begun[place - 1][1] if place else frozenset()


def times(log: ds.Dataset, cut: int) -> Times:
    """As the log says."""
    found = log.to_table(["lsn", "key"], filter=ds.field("kind") == "schema").to_pylist()
    names: frozenset[str] = frozenset()
    begun: dict[int, frozenset[str]] = {}
    for row in sorted(found, key=lambda row: row["lsn"]):
        names |= {row["key"].decode()}
        begun[row["lsn"]] = names
    return Times(list(begun.items()), cut)
