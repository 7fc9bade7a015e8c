"""A chained view: an Aggregate of another view's answer, computed when the question is asked, and never stored.

declaration with `of_view` + the view that it names --bind--> ChainedView --answered--> SQL over the other's answer
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.definitions.clauses import ViewError
from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.definitions.stored_view import AnyView
from spark_jobs.definitions.windows import moment
from spark_jobs.engine import aggregates
from spark_jobs.expressions.dialect import Dialect, failing, listed, quote, rendered
from spark_jobs.expressions.kinds import Kind

ASKED_AT = "asked_at"


@dataclass(frozen=True, eq=False)
class ChainedView(AnyView):
    """aggregate: the view, with the answer of `base` in the place of an event type."""

    declaration: Aggregate
    base: "Served"
    aggregate: AggregateView

    @property
    def event_types(self) -> tuple[str, ...]:
        return self.base.event_types

    @property
    def served_keys(self) -> Mapping[str, Kind]:
        return self.aggregate.served_keys

    @property
    def answer_kinds(self) -> Mapping[str, Kind]:
        return self.aggregate.answer_kinds


Served = View | ChainedView
"""A view that can be asked."""


def aggregate_of(view: Served) -> AggregateView | None:
    """The aggregate that gives the answer its shape; None for a sequence."""
    shaped = view.aggregate if isinstance(view, ChainedView) else view
    return shaped if isinstance(shaped, AggregateView) else None


def stored_of(view: Served) -> View:
    """The view whose partials the answer is made of."""
    return stored_of(view.base) if isinstance(view, ChainedView) else view


def bind_chained(name: str, declared: Aggregate, base: Served) -> ChainedView:
    """Parse the expressions against the columns that `base` serves. Raises: ViewError, ExpressionError."""
    for what in ("of", "each", "lookups", "window"):
        if getattr(declared, what):
            raise ViewError(f"a chained view has `{what}`", f"leave it out, or put it into {base.name}")
    if declared.version != 1:
        raise ViewError("a chained view has a version", "change it in place: nothing of it is stored")
    columns = base.answer_kinds
    if ASKED_AT in columns:
        raise ViewError(f"{base.name} has a column {ASKED_AT}", "rename it: that is the moment of the question here")
    shape = EventColumns({**columns, ASKED_AT: "TIMESTAMP"}, has_envelope=False)
    aggregate = bind_aggregate(name, replace(declared, of=base.name, of_view=None), {base.name: shape})
    view = ChainedView(name, declared.version, declared, base, replace(aggregate, declaration=declared))
    _check_measures(view)
    return view


def check_base(view: ChainedView, version: View) -> None:
    """Check that the view works over any version of its base that may be served. Raises ViewError."""
    used = frozenset[str]().union(*(expression.columns for expression in view.aggregate.expressions)) - {ASKED_AT}
    kinds, other = view.base.answer_kinds, version.answer_kinds
    if lacking := sorted(name for name in used if other.get(name) != kinds[name]):
        reason = f"does not serve {', '.join(lacking)} as {view.base.name} of version {view.base.version} does"
        hint = "use columns that all versions serve, or take the older version's file away"
        raise ViewError(f"{version.id} {reason}", hint)


def _check_measures(view: ChainedView) -> None:
    for measure in view.aggregate.measures:
        if measure.measure.order or any(part.kind == "SKETCH" for part in measure.state):
            reason = f"measure {measure.name}: {type(measure.measure).__name__} in a chained view"
            raise ViewError(reason, "rows of an answer have no order: use others")
    for expression in view.aggregate.expressions:
        if any(failing(expression, d) for d in Dialect):
            reason = f"`{expression.text}` can fail, and a row of an answer has no place where it could be rejected"
            raise ViewError(reason, "use try_add, try_multiply, try_divide or try_cast, which give NULL")


def answered(view: ChainedView, d: Dialect, answer: str, now: datetime | None = None) -> str:
    """The answer over `answer`, a SELECT of the base's. `now`: the moment of the question; None: the engine's clock."""
    made = aggregates.partials(view.aggregate, d, _asked(d, answer, now))
    return aggregates.final(view.aggregate, d, f"({made})")


def contributing_rows(view: ChainedView, base: Served, d: Dialect, answer: str, now: datetime | None = None) -> str:
    """The rows of the answer `base` that count, each with the keys that it counts for (named k__<key>)."""
    keys = [f"{rendered(key, d)} AS {quote(f'k__{name}', d)}" for name, key in view.aggregate.keys.items()]
    columns = listed(base.answer_kinds, d)
    where = f" WHERE {rendered(view.aggregate.where, d)}" if view.aggregate.where else ""
    return f"SELECT {columns}, {', '.join(keys)} FROM ({_asked(d, answer, now)}){where}"


def _asked(d: Dialect, answer: str, now: datetime | None) -> str:
    return f"SELECT *, {moment(d, now)} AS {ASKED_AT} FROM ({answer})"


def ordered(declared: Mapping[str, Aggregate]) -> list[str]:
    """Chained views by name, each after the one that it is made of. Raises ViewError where one is made of itself."""
    names: list[str] = []
    while rest := {name: declaration for name, declaration in declared.items() if name not in names}:
        ready = [name for name, declaration in rest.items() if declaration.of_view not in rest]
        if not ready:
            raise ViewError(f"{', '.join(rest)} are made of each other", "let one of them be made of events")
        names += ready
    return names
