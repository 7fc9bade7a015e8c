"""An inner join without a time: the short form of a Sequence, which is written out for the author.

InnerJoin + event columns -> Sequence, or ViewError, ExpressionError. The binder, both layers and the view lock see the
Sequence alone. Each row gives a result that stays open, for its partner may come at any time; those without are hidden.
"""

from collections.abc import Mapping

from spark_jobs.definitions.clauses import ViewError, check_columns, fields_of
from spark_jobs.definitions.event_columns import EventTypes
from spark_jobs.definitions.spec import InnerJoin, Row, Sequence, Side
from spark_jobs.expressions.expression import parse
from spark_jobs.expressions.kinds import Kind

JOINED_AT, IS_THERE = "joined_at", "is_there"


def sequence_of(join: InnerJoin, event_types: EventTypes) -> Sequence:
    """The Sequence of an inner join. Raises: ViewError, ExpressionError."""
    left, right = (_kinds(name, side, event_types) for name, side in (("left", join.left), ("right", join.right)))
    if twice := sorted(left.keys() & right.keys()):
        raise ViewError(f"both sides have a column named {', '.join(twice)}", "rename it on one side")
    if event_types[join.right.of].compacted:
        raise ViewError(
            f"the right side {join.right.of} is a changelog", "make it the left side: its newest row counts"
        )
    there = f"deleted OR ({join.left.where})" if join.left.where else None  # what is deleted fulfils no condition
    rows = {
        "left": Row(
            of=join.left.of,
            key=join.left.key,
            reach=None,
            where=there,
            columns={**join.left.columns, IS_THERE: "NOT deleted"},
        ),
        "right": Row(
            of=join.right.of, key=join.right.key, reach=None, where=join.right.where, columns=join.right.columns
        ),
    }
    return Sequence(
        key=join.key,
        rows=rows,
        resolve=_resolve(left, right),
        results={**left, **right, JOINED_AT: "TIMESTAMP"},
        hide=f"{JOINED_AT} IS NULL",
        version=join.version,
        owner=join.owner,
        description=join.description,
    )


def _kinds(name: str, side: Side, event_types: EventTypes) -> dict[str, Kind]:
    """The columns of a side with their kinds."""
    fields = fields_of((side.of,), event_types)
    check_columns(f"the {name} side", side.columns)
    if taken := sorted({JOINED_AT, IS_THERE} & side.columns.keys()):
        raise ViewError(f"the {name} side has a column named {taken[0]}", "a join has a column of that name itself")
    return {column: parse(text, fields, f"{name} column {column}").kind for column, text in side.columns.items()}


def _resolve(left: Mapping[str, Kind], right: Mapping[str, Kind]) -> str:
    """The query: beside each row the newest left one of its key, if there is one that is not deleted."""
    newest = "".join(f"first_value({column}) OVER newest AS {column}, " for column in left)
    own = "".join(f"{column}, " for column in right)
    served = "".join(_served(column, kind) for column, kind in {**left, **right}.items())
    return f"""
        WITH met AS (SELECT key, ts, kind, {newest}{own}
            CASE WHEN first_value({IS_THERE}) OVER newest THEN first_value(ts) OVER newest END AS {JOINED_AT}
            FROM {{rows}} WINDOW newest AS (
                PARTITION BY key ORDER BY CASE WHEN kind = 'left' THEN 0 ELSE 1 END, ts DESC, tie DESC, kind))
        SELECT key, ts AS opened_at, {{forever}} AS closes_at, {served}
            CASE WHEN kind = 'right' THEN CASE WHEN {JOINED_AT} < ts THEN ts ELSE {JOINED_AT} END END AS {JOINED_AT}
        FROM met"""


def _served(column: str, kind: Kind) -> str:
    return f"unix_micros({column}) AS {column}, " if kind == "TIMESTAMP" else f"{column}, "
