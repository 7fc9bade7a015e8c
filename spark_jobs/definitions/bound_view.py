"""A view as the rest of Tidemark sees it: a declaration whose expressions are parsed and typed.

spec (what the author wrote) + event types --binder--> AggregateView | SequenceView; most callers need not ask which.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import pyarrow as pa

from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.definitions.measures.base import BoundMeasure, StateColumn, StateKind
from spark_jobs.definitions.spec import Aggregate, Lookup, Row, Sequence, Top
from spark_jobs.definitions.stored_view import StoredView, batch_tables
from spark_jobs.definitions.windows import PANE, BoundWindow
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.expression import Expression
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.query.parse import Query

RANK = "rank"
# The end of an interval that is open, in microseconds.
FOREVER = 2**63 - 1

_POSITION = [("at", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
_STATE: dict[StateKind, pa.DataType] = {
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "POSITION": pa.struct(_POSITION),  # event time first, then the source position; changelogs leave `at` at 0
    "SKETCH": pa.binary(),
}

# Keys of which to_date(key) is the day of occurred_at for every fact: batch.<view> is partitioned by that day.
_OF_ITS_DAY = re.compile(
    r"occurred_at|to_date\(occurred_at\)|cast\(occurred_at as date\)"
    r"|date_trunc\('(second|minute|hour|day)', ?occurred_at\)"
)


@dataclass(frozen=True, eq=False)
class AggregateView(StoredView):
    declaration: Aggregate
    keys: Mapping[str, Expression]  # as stored: with the pane of a window
    window: BoundWindow | None
    where: Expression | None
    each: Mapping[str, Expression]
    measures: tuple[BoundMeasure, ...]
    derived: Mapping[str, Expression]
    having: Expression | None
    tombstone: BoundMeasure | None  # over changelogs: whether the last fact of the key removed it

    @property
    def lookups(self) -> Mapping[str, Lookup]:
        return self.declaration.lookups

    @property
    def top(self) -> Top | None:
        return self.declaration.top

    @cached_property
    def served_keys(self) -> Mapping[str, Kind]:
        """The keys, with the columns of a window in the place of its pane."""
        kinds = {name: key.kind for name, key in self.keys.items()}
        if self.window is None:
            return kinds
        return {name: kind for name, kind in kinds.items() if name != PANE} | self.window.columns

    @cached_property
    def answer_kinds(self) -> Mapping[str, Kind]:
        measures = {measure.name: measure.answer_kind for measure in self.measures}
        derived = {name: expression.kind for name, expression in self.derived.items()}
        rank: dict[str, Kind] = {RANK: "BIGINT"} if self.top else {}
        return {**self.served_keys, **measures, **derived, **rank}

    @property
    def event_types(self) -> tuple[str, ...]:
        return tuple(self.event_columns)

    @property
    def tables(self) -> tuple[str, ...]:
        return batch_tables(self.id)[:1]

    @cached_property
    def stored_keys(self) -> tuple[str, ...]:
        return tuple(self.keys)

    @cached_property
    def ordered_by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*filter(None, [self.bucket]), *self.key_schema.names]))

    @cached_property
    def sketches(self) -> tuple[str, ...]:
        return tuple(part.column for part in self.state if part.kind == "SKETCH")

    @cached_property
    def distinct_keys(self) -> dict[str, BoundMeasure]:
        """The values of exact distinct counts: keys of the partial, not of the answer."""
        return {f"{m.name}__value": m for m in self.measures if m.measure.joins_key}

    @cached_property
    def state(self) -> list[StateColumn]:
        """The state columns: all stored columns beside the keys, shared ones once."""
        return list({part.column: part for measure in self.stored for part in measure.state}.values())

    @property
    def stored(self) -> tuple[BoundMeasure, ...]:
        return (*self.measures, self.tombstone) if self.tombstone else self.measures

    @property
    def is_changelog(self) -> bool:
        return all(shape.compacted for shape in self.event_columns.values())

    @cached_property
    def expressions(self) -> list[Expression]:
        measured = [e for m in self.stored for e in (*m.parts, m.condition)]
        return [e for e in (*self.keys.values(), *self.each.values(), self.where, *measured) if e]

    @cached_property
    def used_columns(self) -> frozenset[str]:
        """The columns of facts that expressions use, and those that rejects and the order of events need."""
        used = frozenset[str]().union(*(expression.columns for expression in self.expressions))
        return (used | {"event_type", "occurred_at"}) - self.each.keys()

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The keys of the partial, those of exact distinct counts last."""
        keys = [(name, arrow_of(key.kind)) for name, key in self.keys.items()]
        extra = [(name, arrow_of(m.value.kind)) for name, m in self.distinct_keys.items() if m.value]
        return pa.schema([*keys, *extra])

    @cached_property
    def partial_schema(self) -> pa.Schema:
        kinds = {part.column: part.kind for part in self.state}
        state = [(name, _STATE.get(kind) or arrow_of(cast(Kind, kind))) for name, kind in kinds.items()]
        return pa.schema([*self.key_schema, *state])

    @cached_property
    def bucket(self) -> str | None:
        if self.window:
            return PANE
        texts = {name: key.text.strip().lower() for name, key in self.keys.items()}
        return next((name for name, text in texts.items() if _OF_ITS_DAY.fullmatch(text)), None)


@dataclass(frozen=True)
class BoundRow:
    """One row kind of a sequence; reach in microseconds, None where unbounded."""

    kind: str
    declaration: Row
    event: EventColumns
    side_columns: Mapping[str, Kind]  # the columns of the side input
    key: Expression
    ts: Expression
    where: Expression | None
    columns: Mapping[str, Expression]
    reach: int | None


@dataclass(frozen=True, eq=False)
class SequenceView(StoredView):
    declaration: Sequence
    rows: tuple[BoundRow, ...]
    resolve: Query | None
    hide: Expression | None
    alert_where: Expression | None
    stored_keys: ClassVar[tuple[str, ...]] = ("key",)
    ordered_by: ClassVar[tuple[str, ...]] = ("key",)

    @property
    def tables(self) -> tuple[str, ...]:
        return batch_tables(self.id)[1:]

    @property
    def served_keys(self) -> Mapping[str, Kind]:
        return {self.key: self.rows[0].key.kind}

    @property
    def answer_kinds(self) -> Mapping[str, Kind]:
        return {**self.served_keys, **self.results}

    @property
    def key(self) -> str:
        return self.declaration.key

    @property
    def results(self) -> Mapping[str, Kind]:
        return self.declaration.results if self.declaration.resolve else self.columns

    @cached_property
    def event_types(self) -> tuple[str, ...]:
        return (*self.row_types, *(name for name in self.side_inputs if name not in self.row_types))

    @cached_property
    def row_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.declaration.of for row in self.rows))

    @cached_property
    def side_inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.declaration.side_input for row in self.rows if row.declaration.side_input))

    @cached_property
    def used_columns(self) -> frozenset[str]:
        parts = (part for row in self.rows for part in (row.key, row.ts, row.where, *row.columns.values()) if part)
        return frozenset({"event_type", "occurred_at"}).union(*(part.columns for part in parts))

    @cached_property
    def columns(self) -> dict[str, Kind]:
        """The projected columns of all row kinds; null in the kinds that lack them."""
        return {name: column.kind for row in self.rows for name, column in row.columns.items()}

    @cached_property
    def row_kinds(self) -> dict[str, Kind]:
        """The stored row: key, ts (microseconds), kind, tie (the source position), and the columns."""
        return {"key": self.rows[0].key.kind, "ts": "BIGINT", "kind": "STRING", "tie": "STRING", **self.columns}

    @cached_property
    def result_kinds(self) -> dict[str, Kind]:
        """The stored result; instants are BIGINT microseconds."""
        stored = {name: "BIGINT" if kind == "TIMESTAMP" else kind for name, kind in self.results.items()}
        return {"key": self.rows[0].key.kind, "opened_at": "BIGINT", "closes_at": "BIGINT", **stored}

    @cached_property
    def partial_schema(self) -> pa.Schema:
        return pa.schema([(name, arrow_of(kind)) for name, kind in self.row_kinds.items()])


View = AggregateView | SequenceView
"""A view that both layers store; nothing is stored of a chained one (engine.chained_view)."""
