"""Try a view on a handful of events, without Spark or Kafka: as batch, as speed, and merged at every cut; or on random
ones, by `check`.

events.yaml -> facts (Arrow) -> partials -> merged -> answer, all in DuckDB. tests/views/<view>/<case>/ holds
`events.yaml` (a list of micro-batches, each a list of `{event_type: {field: value}}`) and `expect.yaml` (the answer's
rows; of a trailing window `{now: .., rows: ..}`). Fields that are left out come from the contract's first example,
except for `event_id`: events with the same one count once. Two more fields describe the record: `timestamp`, when Kafka
took it, by default at `occurred_at`; and `rejected: <reason>`, with which it is no fact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import yaml

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import dedupe, record_outcomes, sequences, serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.engine.decode import identity
from spark_jobs.engine.decode.reasons import UNTYPED
from spark_jobs.engine.partials import compute, of_facts
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.engine.sketches import add_sketches, finished
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.registry.views import Views, project_views

if TYPE_CHECKING:
    from spark_jobs.testing import laws

D = Dialect.DUCKDB
INSTANT = pa.timestamp("us", "UTC")
Facts = Mapping[str, pa.Table]
Batches = Sequence[Sequence[Mapping[str, Mapping[str, Any]]]]
Answer = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One folder of tests/views: what was logged, and what the view answers."""

    view: str
    name: str
    batches: Batches
    expected: Answer
    now: datetime | None = None


def cases(folder: Path) -> list[Case]:
    """Every case under `folder`, as <view>/<case>."""
    return [_case(path) for path in sorted(folder.glob("*/*/events.yaml"))]


def _case(path: Path) -> Case:
    expected, now = _yaml(path.with_name("expect.yaml")) or [], None
    if isinstance(expected, dict):
        expected, now = expected["rows"], _value(expected["now"], INSTANT)
    rows = [{k: _value(v, INSTANT) if isinstance(v, datetime) else v for k, v in row.items()} for row in expected]
    return Case(path.parent.parent.name, path.parent.name, _yaml(path), in_order(rows), now)


def hold(case: Case) -> None:
    """Check the view by its case: as batch, as speed, and merged at every cut. Raises AssertionError."""
    views, logged = project_views(), facts(case.batches)
    for cut in range(len(case.batches) + 1):
        answered = answer(views.served[case.view], views, *until(logged, cut), case.now)
        assert answered == case.expected, f"{case.view}, {case.name}, cut {cut}: {answered}, expected {case.expected}"


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def facts(batches: Batches, first_lsn: int = 1) -> dict[str, pa.Table]:
    """The facts of micro-batches first_lsn, first_lsn + 1, ...; offsets count up per topic and partition.

    The first of facts with the same event_id is left, as in both layers; record outcomes are among the facts.
    """
    offsets: dict[tuple[str, int], int] = {}
    rows: dict[str, list[dict[str, Any]]] = {}
    refused: list[dict[str, Any]] = []
    for lsn, batch in enumerate(batches, first_lsn):
        for event_type, fields in (item for event in batch for item in event.items()):
            contract = project_contracts().of(event_type)
            place = (contract.topic, int(fields.get("partition", 0)))
            offsets[place] = offsets.get(place, -1) + 1
            row = _fact(contract, fields)
            position = {"lsn": lsn, "topic": contract.topic, "partition": place[1], "offset": offsets[place]}
            if reason := fields.get("rejected"):
                known = None if reason in UNTYPED else event_type
                refused.append({**row, **position, "event_type": known, "reason": reason})
            else:
                rows.setdefault(event_type, []).append(row | position)
    made = {name: pa.Table.from_pylist(some, project_contracts().of(name).fact_schema) for name, some in rows.items()}
    identified = {name: _identified(name, table) for name, table in made.items()}
    return _settled(identified, pa.Table.from_pylist(refused, row_types.REJECT))


def _settled(decoded: Facts, rejects: pa.Table) -> dict[str, pa.Table]:
    """The facts without the repeated ones, with the record outcomes."""
    nothing = pa.schema(row_types.COORDINATES).empty_table()
    lost = [dedupe.first_of_each(rows)[1].select(nothing.schema.names) for rows in decoded.values()]
    noted = record_outcomes.of_decoded(decoded, rejects)
    return record_outcomes.settled(
        {**decoded, record_outcomes.RECORD_OUTCOME: noted} if noted else decoded, pa.concat_tables([nothing, *lost])
    )


def _identified(event_type: str, rows: pa.Table) -> pa.Table:
    place = rows.schema.get_field_index("identity")
    return rows.set_column(place, rows.schema.field(place), identity.of(event_type, rows))


def _fact(contract: Contract, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A tombstone (`deleted: true`) has its key and nothing else."""
    deleted = bool(fields.get("deleted", False))
    base = {} if deleted else {**contract.flat(contract.examples[0]), "event_id": None}
    row: dict[str, Any] = {**base, **fields, "deleted": deleted, "event_type": contract.event_type}
    row.setdefault("timestamp", row.get("occurred_at"))
    kinds = {field.name: field.type for field in contract.fact_schema}
    return {name: _value(row.get(name), kind) for name, kind in kinds.items()}


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None or not pa.types.is_timestamp(kind):
        return value
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def until(facts_: Facts, cut: int) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Facts with lsn <= cut, and those after it."""
    masks = {name: pa.compute.less_equal(rows["lsn"], cut) for name, rows in facts_.items()}
    before = {name: rows.filter(masks[name]) for name, rows in facts_.items()}
    return before, {name: rows.filter(pa.compute.invert(masks[name])) for name, rows in facts_.items()}


def connect() -> duckdb.DuckDBPyConnection:
    """A connection in which every view's DuckDB text runs."""
    connection = duckdb_session.connect()
    add_sketches(connection)
    return connection


def answer(view: Served, views: Views, built: Facts, new: Facts, now: datetime | None = None) -> Answer:
    """What the view serves if the batch layer has built `built` and the speed layer computed `new`; sorted.

    now: the moment of the question, for trailing windows.
    """
    with connect() as connection:
        sql = serving_plan.answer(view, _Parts(connection, views, built, new, now))
        return in_order(connection.sql(sql).to_arrow_table().to_pylist())


def in_order(rows: Iterable[dict[str, Any]]) -> Answer:
    return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row.values()])


def check(
    view: str | Served,
    oracle: "laws.Oracle | None" = None,
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    step: timedelta | None = None,
    tolerance: float = 1e-9,
    examples: int = 100,
    seed: int = 0,
) -> None:
    """Try the laws that hold for every view on random histories of its events: late, out of order, repeated.

    An event that comes twice counts once; batch up to any lsn and speed after it answer as speed alone; micro-batches
    may be cut anywhere; and a quiet instant divides a Sequence (docs/sequences.md).

    oracle: from the micro-batches (as in events.yaml, nothing repeated) to the rows that the view must answer. A view
    of record outcomes counts repeated events: there the first law does not hold, and the oracle gets them.
    values: field -> what it may be, where the schema's own few values would hardly meet the view's conditions.
    step: between possible times. tolerance: relative, of floats. Raises laws.LawBroken with the smallest history.
    """
    from spark_jobs.testing import laws

    views = project_views()
    asked = views.served[view] if isinstance(view, str) else view
    trial = laws.Trial(asked, views, oracle, values or {}, step or laws.step_of(asked), tolerance)
    laws.try_laws(trial, examples, seed)


class _Parts:
    """A view's facts as relations: `built` as batch tables, `new` as what the speed layer has computed past the cut."""

    dialect = D

    def __init__(
        self, con: duckdb.DuckDBPyConnection, views: Views, built: Facts, new: Facts, now: datetime | None
    ) -> None:
        self.con, self.views, self.facts, self.new, self.now = con, views, built, new, now
        for name, rows in built.items():
            con.register(f"built_{name}", rows)

    @property
    def in_force(self) -> Iterable[View]:
        return self.views.by_name.values()

    def built(self, view: View) -> list[str]:
        facts_of = {name: f"built_{name}" for name in view.event_types if name in self.facts}
        if not facts_of.keys() & set(view.row_types):
            return []
        if isinstance(view, SequenceView):
            return self._sequence(view, facts_of)
        made = self.con.sql(of_facts(view, D, facts_of, ())).to_arrow_table()
        self.con.register(f"batch_{view.id}", finished(made, view.sketches, view.partial_schema))
        return [f"batch_{view.id}"]

    def _sequence(self, view: SequenceView, facts_of: Mapping[str, str]) -> list[str]:
        self.con.execute(f"CREATE OR REPLACE TABLE rows AS {of_facts(view, D, facts_of)}")
        self.con.execute(f"CREATE OR REPLACE TABLE results AS {sequences.resolve(view, D, 'rows')}")
        return [f"({query})" for query in sequences.stretches(view, D, "rows", "results")]

    def added(self, view: View) -> str:
        passed = compute({**self.new, **side_inputs(view, self.facts, self.new)}, [view])
        if passed.failed:
            raise AssertionError(passed.failed)
        self.con.register(f"fresh_{view.id}", passed.partials[view.column])
        return f"SELECT * FROM fresh_{view.id}"


def side_inputs(view: View, *parts: Facts) -> dict[str, pa.Table]:
    """The side inputs of the view's rows, of all facts."""
    empty = {name: project_contracts().of(name).fact_schema.empty_table() for name in view.side_inputs}
    return {
        side_input_key(name): pa.concat_tables([nothing, *(part[name] for part in parts if name in part)])
        for name, nothing in empty.items()
    }
