"""Try a view on a few events, as batch, as speed, and merged at every cut; `check` tries it on random ones.

events.yaml -> facts (Arrow) -> partials -> merged -> answer, all in DuckDB. tests/views/<view>/<case>/ holds
`events.yaml` (a list of micro-batches, each a list of `{event_type: {field: value}}`) and `expect.yaml` (the answer's
rows; of a trailing window `{now: .., rows: ..}`). Fields that are left out come from the contract's first example,
except for `event_id`: events with the same one count once. Two more fields describe the record: `timestamp`, when Kafka
took it, by default at `occurred_at`; and `rejected: <reason>`, with which it is no fact.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import dedupe, record_outcomes, sequences, serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.engine.decode.assemble import Decoded, identified, with_outcomes
from spark_jobs.engine.decode.reasons import UNTYPED
from spark_jobs.engine.partials import compute, of_facts
from spark_jobs.engine.plans import Plans
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.engine.sketches import add_sketches, finished
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.registry.views import Views, project_views

if TYPE_CHECKING:
    from spark_jobs.testing.laws import Tried

D = Dialect.DUCKDB
Facts = Mapping[str, pa.Table]
Batches = Sequence[Sequence[Mapping[str, Mapping[str, Any]]]]
Answer = list[dict[str, Any]]
Oracle = Callable[[Batches], Iterable[Mapping[str, Any]]]
"""A history without repetitions -> the rows that the view must answer, in any order, written without the view."""


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
    batches, expected = (yaml.safe_load(p.read_text("utf-8")) for p in (path, path.with_name("expect.yaml")))
    now = None
    if isinstance(expected, dict):
        expected, now = expected["rows"], _instant(expected["now"])
    rows = [{k: _instant(v) if isinstance(v, datetime) else v for k, v in row.items()} for row in expected or ()]
    return Case(path.parent.parent.name, path.parent.name, batches, in_order(rows), now)


def hold(case: Case) -> None:
    """Check the view by its case: as batch, as speed, and merged at every cut. Raises AssertionError."""
    views, logged = project_views(), facts(case.batches)
    for cut in range(len(case.batches) + 1):
        answered = answer(views.served[case.view], views, *until(logged, cut), case.now)
        assert answered == case.expected, f"{case.view}, {case.name}, cut {cut}: {answered}, expected {case.expected}"


def facts(batches: Batches) -> dict[str, pa.Table]:
    """The facts of micro-batches 1, 2, ...; offsets count up per topic and partition.

    The first of facts with the same event_id is left, as in both layers; record outcomes are among the facts.
    """
    known = project_contracts()
    offsets: dict[tuple[str, int], Iterator[int]] = defaultdict(count)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    refused: list[dict[str, Any]] = []
    for lsn, batch in enumerate(batches, 1):
        for event_type, fields in chain.from_iterable(event.items() for event in batch):
            contract = known.of(event_type)
            topic, partition = contract.topic, int(fields.get("partition", 0))
            place = {"lsn": lsn, "topic": topic, "partition": partition, "offset": next(offsets[topic, partition])}
            row = _fact(contract, fields) | place
            if reason := fields.get("rejected"):
                refused.append(row | {"event_type": None if reason in UNTYPED else event_type, "reason": reason})
            else:
                rows[event_type].append(row)
    made = {name: [pa.Table.from_pylist(some, known.of(name).fact_schema)] for name, some in rows.items()}
    decoded = with_outcomes(Decoded(identified(made), pa.Table.from_pylist(refused, row_types.REJECT)), known)
    nothing = pa.schema(row_types.COORDINATES).empty_table()
    events = record_outcomes.countable(decoded.facts).values()
    repeated = [dedupe.first_of_each(rows)[1].select(nothing.schema.names) for rows in events]
    return record_outcomes.settled(decoded.facts, pa.concat_tables([nothing, *repeated]))


def _fact(contract: Contract, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A tombstone (`deleted: true`) has its key and nothing else."""
    deleted = bool(fields.get("deleted", False))
    base = {} if deleted else {**contract.flat(contract.examples[0]), "event_id": None}
    row: dict[str, Any] = {**base, **fields, "deleted": deleted, "event_type": contract.event_type}
    row.setdefault("timestamp", row.get("occurred_at"))
    return {
        field.name: _instant(row.get(field.name)) if pa.types.is_timestamp(field.type) else row.get(field.name)
        for field in contract.fact_schema
    }


def _instant(value: datetime | str | None) -> datetime | None:
    """An instant of a case; in UTC where it names no zone."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.replace(tzinfo=UTC) if at and not at.tzinfo else at


def until(facts_: Facts, cut: int) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Facts with lsn <= cut, and those after it."""
    masks = {name: pa.compute.less_equal(rows["lsn"], cut) for name, rows in facts_.items()}
    before = {name: rows.filter(masks[name]) for name, rows in facts_.items()}
    return before, {name: rows.filter(pa.compute.invert(masks[name])) for name, rows in facts_.items()}


@cache
def plans() -> Plans:
    """In which every view's DuckDB text runs. Of the process: a view is asked the same of each case."""
    connection = duckdb_session.connect()
    add_sketches(connection)
    return Plans(connection)


def answer(view: Served, views: Views, built: Facts, new: Facts, now: datetime | None = None) -> Answer:
    """What the view serves if the batch layer has built `built` and the speed layer computed `new`; sorted.

    now: the moment of the question, for trailing windows.
    """
    parts = _Parts(views, built, new, now)
    query = serving_plan.answer(view, parts)
    return in_order(plans().ask(query, parts.relations).to_pylist())


def in_order(rows: Iterable[dict[str, Any]]) -> Answer:
    return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row.values()])


def check(
    view: str | Served,
    oracle: Oracle | None = None,
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    unique: Iterable[str] = (),
    step: timedelta | None = None,
    tolerance: float = 1e-9,
    examples: int = 100,
    seed: int = 0,
) -> "Tried":
    """Try the laws of docs/views.md, "On random events", on histories of events: late, out of order, repeated.

    oracle: from the micro-batches (as in events.yaml, nothing repeated) to the rows that the view must answer. A view
    of record outcomes counts repeated events: there the first law does not hold, and the oracle gets them.
    values: field -> what it may be, where the schema's own few values would hardly meet the view's conditions.
    unique: fields that no two events share, such as an order's id. step: between possible times. tolerance: relative,
    of floats. Returns what was tried, and how many rows met. Raises laws.LawBroken with the smallest history.
    """
    from spark_jobs.testing import laws

    asked = project_views().served[view] if isinstance(view, str) else view
    trial = laws.Trial(asked, oracle, values or {}, step or laws.step_of(asked), tolerance, frozenset(unique))
    return laws.try_laws(trial, examples, seed)


@dataclass(frozen=True)
class _Parts:
    """A view's `facts` as batch tables, and `new` as the speed layer's partials; all these are in `relations`."""

    views: Views
    facts: Facts
    new: Facts
    now: datetime | None
    dialect: Dialect = D
    relations: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def in_force(self) -> Iterable[View]:
        return self.views.by_name.values()

    def built(self, view: View) -> list[str]:
        facts_of = {name: f"facts_{name}" for name in view.event_types if name in self.facts}
        facts = {relation: self.facts[name] for name, relation in facts_of.items()}
        if not facts_of.keys() & set(view.row_types):
            return []
        rows, results, batch = (f"{what}_{view.id}" for what in ("rows", "results", "batch"))
        if isinstance(view, SequenceView):
            self.relations[rows] = made = plans().ask(of_facts(view, facts_of), facts)
            self.relations[results] = plans().ask(sequences.resolve(view, D, rows), {rows: made})
            return [f"({query})" for query in sequences.stretched(view, rows, results)]
        made = plans().ask(of_facts(view, facts_of, ()), facts)
        self.relations[batch] = finished(made, view.sketches, view.partial_schema)
        return [batch]

    def added(self, view: View) -> str:
        passed = compute({**self.new, **side_inputs(view, self.facts, self.new)}, [view])
        if passed.failed:
            raise AssertionError(passed.failed)
        self.relations[f"fresh_{view.id}"] = passed.partials[view.column]
        return f"SELECT * FROM fresh_{view.id}"


def side_inputs(view: View, *parts: Facts) -> dict[str, pa.Table]:
    """The side inputs of the view's rows, of all facts."""
    empty = {name: project_contracts().of(name).fact_schema.empty_table() for name in view.side_inputs}
    return {
        side_input_key(name): pa.concat_tables([nothing, *(part[name] for part in parts if name in part)])
        for name, nothing in empty.items()
    }
