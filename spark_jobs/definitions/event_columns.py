"""What views know of the event types: names and kinds of the columns that expressions may use.

contracts -> registry.shapes_of -> Shapes (event type -> EventShape). Tests make shapes of their own.
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
    """What views need to know of an event type: its fields' kinds, the required ones, whether it is a changelog.

    is_outcome: what the platform says of records, and nobody sends; no part of `of="*"`.
    has_envelope: false for the rows of a view, over which another view is made.
    """

    fields: Mapping[str, Kind]
    compacted: bool = False
    required: frozenset[str] = frozenset()
    has_envelope: bool = True
    is_outcome: bool = False

    def never_null(self, expression: Expression) -> bool:
        """Surely a value in every fact: a required field as it is, or the time of the event."""
        name = expression.text.strip()
        return name == "occurred_at" or (name in self.required and not self.compacted)


EventTypes = Mapping[str, EventColumns]
