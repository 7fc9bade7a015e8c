"""What each clause of a view accepts: a name, a duration, a text that is a key, a condition or the elements of a list.

Text + the columns that it may use -> typed expression, or ViewError (reason, hint), ExpressionError.
"""

import re
from collections.abc import Iterable, Mapping

from spark_jobs.definitions.event_columns import ENVELOPE, EventTypes
from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.expression import Expression, parse
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.literals import micros
from spark_jobs.expressions.query.typed import OWN
from spark_jobs.expressions.source import NAME

RESERVED = {"lsn", "view", "span", "bucket_day", "stretch_end", "event", "control"}
TAKEN = {*OWN, "opened_at", "closes_at"}


class ViewError(ValueError):
    """Why a view cannot be used, and what to do about it."""

    def __init__(self, reason: str, hint: str):
        super().__init__(f"{reason}; {hint}")
        self.reason, self.hint = reason, hint


def check_name(name: str) -> None:
    """The name of a column that a view may have. Raises: ViewError."""
    if not NAME.fullmatch(name) or name in RESERVED:
        hint = "use lower case letters, digits and single underscores, and none of Tidemark's own names"
        raise ViewError(f"{name!r} cannot be a column", hint)


def check_columns(of: str, names: Iterable[str]) -> None:
    """The columns of rows or results, which have some of their own. Raises: ViewError."""
    for name in names:
        check_name(name)
        if name in TAKEN:
            raise ViewError(f"{of} has a column named {name}", "rows and results have columns of that name themselves")


def fields_of(types: tuple[str, ...], event_types: EventTypes) -> dict[str, Kind]:
    """The columns that expressions may use: the envelope and the fields of all the types. Raises: ViewError."""
    fields: dict[str, Kind] = {}
    for event_type in types:
        if event_type not in event_types:
            raise ViewError(f"unknown event type {event_type}", f"known are {', '.join(sorted(event_types))}")
        fields |= ENVELOPE if event_types[event_type].has_envelope else {}
        for field, kind in event_types[event_type].fields.items():
            if fields.setdefault(field, kind) != kind:
                hint = "use views of their own for these types"
                raise ViewError(f"field {field} is {fields[field]} and {kind}", hint)
    return fields


def microseconds(duration: str, what: str) -> int:
    """A duration in words. Raises: ViewError, which begins with `what`."""
    written = re.fullmatch(r"(\d+) (second|minute|hour|day)s?", duration)
    if not written:
        raise ViewError(f"{what} {duration!r}", 'write it as "30 minutes" (seconds, minutes, hours, days)')
    return int(written[1]) * micros(written[2])


def key_of(text: str, fields: Mapping[str, Kind], where: str) -> Expression:
    """A key: of a kind that has one form per value. Raises: ExpressionError."""
    expression = parse(text, fields, where)
    if expression.kind == "DOUBLE" or expression.kind.startswith("ARRAY"):
        raise ExpressionError(text, where, f"a key cannot be {expression.kind}", "CAST it to BIGINT or STRING")
    return expression


def condition_of(text: str | None, fields: Mapping[str, Kind], where: str) -> Expression | None:
    """A condition, or none. Raises: ExpressionError."""
    if text is None:
        return None
    expression = parse(text, fields, where)
    if expression.kind != "BOOLEAN":
        raise ExpressionError(text, where, f"a filter cannot be {expression.kind}", "write a condition")
    return expression


def element_of(text: str, fields: Mapping[str, Kind], where: str) -> Expression:
    """A list of words, for `each`. Raises: ExpressionError."""
    expression = parse(text, fields, where)
    if expression.kind != "ARRAY<STRING>" or expression.duckdb_fails or expression.spark_fails:
        hint = "use split(column, 'pattern')"
        raise ExpressionError(text, where, "`each` takes an ARRAY<STRING> that cannot fail", hint)
    return expression
