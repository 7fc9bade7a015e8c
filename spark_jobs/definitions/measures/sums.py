"""Counts, sums, extremes and means: one or two state columns each."""

from dataclasses import dataclass
from typing import ClassVar

from spark_jobs.definitions.measures.base import (
    Measure,
    StateColumn,
    count_column,
    number_kind,
    sum_column,
    value_kind,
)
from spark_jobs.expressions.dialect import Sql
from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True)
class Count(Measure):
    """Number of facts, or of those whose `of` is not null."""

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [count_column(name, "*" if kind is None else "{x}")]


@dataclass(frozen=True)
class Sum(Measure):
    """Exact sum; a sum of BIGINTs is served as BIGINT, or as NULL if it does not fit one."""

    answers: ClassVar[Kind | None] = None

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [sum_column(name, number_kind(kind, self), "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"try_cast([{name}] AS BIGINT)" if kind == "BIGINT" else f"[{name}]"


@dataclass(frozen=True)
class Min(Measure):
    """Least value; nulls are left out."""

    answers: ClassVar[Kind | None] = None

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [StateColumn(name, value_kind(kind, self), "min({x}){f}", f"min([{name}])")]


@dataclass(frozen=True)
class Max(Measure):
    """Greatest value; nulls are left out."""

    answers: ClassVar[Kind | None] = None

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [StateColumn(name, value_kind(kind, self), "max({x}){f}", f"max([{name}])")]


@dataclass(frozen=True)
class Mean(Measure):
    """Arithmetic mean of the values that are not null, a DOUBLE; stored as exact sum and count."""

    answers: ClassVar[Kind | None] = "DOUBLE"

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [sum_column(f"{name}__sum", number_kind(kind, self), "{x}"), count_column(f"{name}__count", "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"CAST([{name}__sum] AS DOUBLE) / nullif(CAST([{name}__count] AS DOUBLE), 0)"
