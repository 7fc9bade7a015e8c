"""The columns of each event type that expressions may use: their names and kinds.

contracts -> registry.views.event_types_of -> EventTypes (event type -> EventColumns). Tests make their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.expressions.expression import Expression
from spark_jobs.expressions.kinds import Kind

# What expressions may use of every fact, beside the fields of its event type.
ENVELOPE: Mapping[str, Kind] = {
    "event_id": "STRING",
    "event_type": "STRING",
    "occurred_at": "TIMESTAMP",
    "deleted": "BOOLEAN",
    "topic": "STRING",
}


@dataclass(frozen=True)
class EventColumns:
    """The columns of an event type: its fields' kinds, the required ones, and whether it is a changelog.

    is_outcome: record outcomes, which nobody sends; no part of `of="*"`.
    has_envelope: false for the rows of a view, to which another view is chained.
    """

    fields: Mapping[str, Kind]
    compacted: bool = False
    required: frozenset[str] = frozenset()
    has_envelope: bool = True
    is_outcome: bool = False

    def never_null(self, expression: Expression) -> bool:
        """Whether every fact has a value: a required field as it is, or the time of the event."""
        name = expression.text.strip()
        return name == "occurred_at" or (name in self.required and not self.compacted)


EventTypes = Mapping[str, EventColumns]
