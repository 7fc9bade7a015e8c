"""The expectations on facts and batch tables, derived from contracts and views, and those that people add.

contract | view -> Suite (the columns to look at, Great Expectations' expectations). Nothing here touches data.
Own expectations: a list of {"type", "kwargs", "severity", "notes"} in `<table>.json` of the quality folder;
docs/quality.md.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import great_expectations.expectations as gxe
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.row_conditions import Column

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract, Field
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.definitions.measures.exact import Count, Mean, Variance
from spark_jobs.expressions.expression import Expression
from spark_jobs.settings import settings
from spark_jobs.storage import tables

# The columns that every row has, of a record outcome too.
ENVELOPE = tuple(name for name in row_types.FACT.names if name not in ("event_id", "identity"))
# Functions that give a value wherever they are given one.
_STRICT = {"date_trunc", "to_date", "window_start", "lower", "upper", "trim", "length", "concat", "coalesce", "abs"}
_OF_ROWS = (
    gxe.ExpectColumnPairValuesAToBeGreaterThanB,
    gxe.ExpectColumnPairValuesToBeEqual,
    gxe.ExpectColumnPairValuesToBeInSet,
    gxe.ExpectColumnValueLengthsToBeBetween,
    gxe.ExpectColumnValueLengthsToEqual,
    gxe.ExpectColumnValuesToBeBetween,
    gxe.ExpectColumnValuesToBeInSet,
    gxe.ExpectColumnValuesToBeNull,
    gxe.ExpectColumnValuesToMatchRegex,
    gxe.ExpectColumnValuesToMatchRegexList,
    gxe.ExpectColumnValuesToNotBeInSet,
    gxe.ExpectColumnValuesToNotBeNull,
    gxe.ExpectColumnValuesToNotMatchRegex,
    gxe.ExpectColumnValuesToNotMatchRegexList,
    gxe.ExpectMulticolumnSumToEqual,
    gxe.ExpectSelectColumnValuesToBeUniqueWithinRecord,
)


class SuiteError(ValueError):
    """A file of own expectations that cannot be used; says which, and why."""


@dataclass(frozen=True)
class Suite:
    """The expectations on one table. `columns`: those that the expectations name.

    together: columns of which rows with equal values must be judged together; none: each row can be judged by itself.
    None: only the whole table can be judged.
    """

    table: str
    columns: tuple[str, ...]
    expectations: tuple[Expectation, ...]
    together: tuple[str, ...] | None = None


def of_completeness() -> Suite:
    """Per topic: every record that landed became one fact, one quarantined record or one duplicate (I1)."""
    columns = ("topic", "records", "accounted_for")
    equal = gxe.ExpectColumnPairValuesToBeEqual(
        column_A="records", column_B="accounted_for", severity="critical", ignore_row_if="neither"
    )
    return Suite(tables.MASTER_LOG, columns, (_not_null("topic"), equal))


def of_identities() -> Suite:
    """Per event type with such facts: how many repeat a fact that was decoded at another time (I1)."""
    none = gxe.ExpectColumnValuesToBeBetween(
        column="repeated", max_value=0, severity="critical", notes="No event is two facts (I1)."
    )
    return Suite(tables.IDENTITIES, ("event_type", "repeated"), (_not_null("event_type"), none))


def of_facts(contract: Contract, cut: int, now: datetime) -> Suite:
    """What a fact must be: its contract again, on the stored rows, and its place in the log; one outcome a record."""
    expects: list[Expectation] = [_not_null(name) for name in ENVELOPE]
    expects += [_unique(list(dict(row_types.COORDINATES)))] if contract.is_outcome else _of_sent(contract)
    expects += [
        _between("lsn", 1, cut),
        _in_set("event_type", [contract.event_type]),
        gxe.ExpectColumnValuesToBeBetween(
            column="occurred_at", max_value=now + timedelta(days=1), severity="warning", notes="A clock runs ahead."
        ),
    ]
    for field in contract.fields:
        expects += _of_field(field, contract)
    columns = (*ENVELOPE, "identity", *(field.name for field in contract.fields))
    together = dict(row_types.COORDINATES) if contract.is_outcome else ["identity"]
    return _suite(tables.facts(contract.event_type), columns, expects, together)


def _of_sent(contract: Contract) -> Iterator[Expectation]:
    yield _not_null("identity")
    yield gxe.ExpectColumnValuesToBeUnique(column="identity", severity="critical", notes="No event is two facts (I1).")
    yield _in_set("topic", [contract.topic])


def _of_field(field: Field, contract: Contract) -> Iterator[Expectation]:
    """The expectations on a field; a tombstone has its key and nothing else."""
    name, schema = field.name, field.schema
    if field.required and contract.compacted and name != contract.key:
        alive = Column("deleted") == False  # noqa: E712  (it builds a condition)
        yield gxe.ExpectColumnValuesToNotBeNull(column=name, severity="critical", row_condition=alive)
    elif field.required:
        yield _not_null(name)
    if allowed := [schema["const"]] if "const" in schema else schema.get("enum"):
        yield _in_set(name, [value for value in allowed if value is not None])
    if "minimum" in schema or "maximum" in schema:
        yield _between(name, schema.get("minimum"), schema.get("maximum"))
    if "minLength" in schema or "maxLength" in schema:
        yield gxe.ExpectColumnValueLengthsToBeBetween(
            column=name, min_value=schema.get("minLength"), max_value=schema.get("maxLength"), severity="critical"
        )


def of_view(view: View, *, must_have_rows: bool) -> list[Suite]:
    """A suite for each table of the view, in their order."""
    if isinstance(view, AggregateView):
        return [of_aggregate(view, must_have_rows=must_have_rows)]
    return [of_rows(view), of_results(view, must_have_rows=must_have_rows)]


def of_aggregate(view: AggregateView, *, must_have_rows: bool) -> Suite:
    """One row per key, no key missing, no negative count."""
    never = {*_required(view.event_columns), *ENVELOPE, *view.each}
    keys = [*view.keys, *view.distinct_keys]
    expects = [_unique(keys), *(_not_null(name) for name, key in view.keys.items() if never_null(key, never))]
    counted = (m for m in view.measures if isinstance(m.measure, Count | Mean | Variance))
    counts = [m.name if isinstance(m.measure, Count) else f"{m.name}__count" for m in counted]
    for count in counts:
        expects += [_not_null(count), _between(count, 0)]
    [table] = view.tables
    return _suite(table, (*keys, *counts), [*expects, *_rows(must_have_rows)], keys or None)


def of_rows(view: SequenceView) -> Suite:
    """Stored rows of a sequence: each source row once, of a known kind, in a stretch that has not ended before it."""
    columns = ("key", "ts", "kind", "tie", "stretch_end")
    known = _in_set("kind", [row.kind for row in view.rows])
    table, _ = view.tables
    place = ["kind", "tie"]
    expects = [*map(_not_null, columns), _unique(place), known, _ordered("ts", "stretch_end")]
    return _suite(table, columns, expects, place)


def of_results(view: SequenceView, *, must_have_rows: bool) -> Suite:
    """Results of a sequence: each has its key and an interval that lies in its stretch."""
    columns = ("key", "opened_at", "closes_at", "stretch_end")
    expects = [
        *map(_not_null, columns),
        _ordered("opened_at", "closes_at"),
        _ordered("closes_at", "stretch_end"),
        *_rows(must_have_rows, "warning"),  # not every row need make a result
    ]
    _, table = view.tables
    return _suite(table, (*columns, *view.results), expects, ())


def _required(event_types: Iterable[str]) -> set[str]:
    """Columns that no fact of any of the event types leaves null."""
    contracts = map(project_contracts().of, event_types)
    required = ({f.name for f in c.fields if f.required and (not c.compacted or f.name == c.key)} for c in contracts)
    return set.intersection(*required)


def never_null(key: Expression, never: set[str]) -> bool:
    """Whether a key surely has a value: made by strict functions of columns that have one."""
    functions = {name.lower() for name in re.findall(r"(\w+)\s*\(", key.text)}
    has_choice = re.search(r"\b(case|null|try_cast|nullif)\b", key.text, re.IGNORECASE)
    return key.columns <= never and functions <= _STRICT and not has_choice


def _suite(table: str, columns: Iterable[str], expects: Iterable[Expectation], together: Iterable[str] | None) -> Suite:
    own = _own_expectations(table)
    apart = tuple(together) if together is not None and all(map(_judges_a_row, own)) else None
    return Suite(table, tuple(columns), (*expects, *own), apart)


def _judges_a_row(expectation: Expectation) -> bool:
    """Whether a row alone meets it or not; not so of a mean, an order, a share, or values that are all different."""
    return isinstance(expectation, _OF_ROWS) and expectation.mostly == 1


def _own_expectations(table: str) -> list[Expectation]:
    """What people expect of a table beyond its schema; the installation's file replaces the project's.

    Raises SuiteError.
    """
    files = [folder / f"{table}.json" for folder in (settings().expectations, settings().quality_folder)]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return []
    try:
        return [_own(stated) for stated in json.loads(file.read_text("utf-8"))]
    except Exception as error:  # GX raises many kinds; whichever it is, the file cannot be used
        raise SuiteError(f"{file}: {error}") from error


def _own(own: dict[str, Any]) -> Expectation:
    if unknown := own.keys() - {"type", "kwargs", "severity", "notes"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    config = ExpectationConfiguration(
        type=own["type"], kwargs=own["kwargs"], severity=own.get("severity", "critical"), notes=own.get("notes")
    )
    return config.to_domain_obj()


def _not_null(column: str) -> Expectation:
    return gxe.ExpectColumnValuesToNotBeNull(column=column, severity="critical")


def _in_set(column: str, values: list[Any]) -> Expectation:
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=values, severity="critical")


def _between(column: str, least: float | None, most: float | None = None) -> Expectation:
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=least, max_value=most, severity="critical")


def _unique(columns: list[str]) -> Expectation:
    """Unique together, nulls included: GX's check of a single column skips nulls, so that column is named twice."""
    columns = columns * 2 if len(columns) == 1 else columns
    return gxe.ExpectCompoundColumnsToBeUnique(column_list=columns, severity="critical", ignore_row_if="never")


def _ordered(lower: str, upper: str) -> Expectation:
    return gxe.ExpectColumnPairValuesAToBeGreaterThanB(
        column_A=upper, column_B=lower, or_equal=True, severity="critical", ignore_row_if="either_value_is_missing"
    )


def _rows(must_have: bool, severity: str = "critical") -> list[Expectation]:
    note = "There are facts that it counts."
    return [gxe.ExpectTableRowCountToBeBetween(min_value=1, severity=severity, notes=note)] if must_have else []
