"""The serving rule, said once: an answer is what the batch layer built, with what the speed layer added past the cut.

view + Relations (an engine's names of the parts) -> one SELECT. The text of the serving views, the answers that explain
and verify compute from the tables' files, and the cases of a view's tests are all made here.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import aggregates, chained_view, sequences
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, listed, quote


class Relations(Protocol):
    """Where the parts of an answer are, in one engine."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def now(self) -> datetime | None:
        """The moment of the question, for trailing windows and `asked_at`; None for the engine's clock."""

    @property
    def in_force(self) -> Iterable[View]:
        """The views that can be read, among them one version of each that is served."""

    def built(self, view: View) -> Sequence[str]:
        """The relations of `view.tables` as they were built; none where nothing is built yet."""

    def added(self, view: View) -> str:
        """SELECT of the view's partials past the cut, of those that count now."""


def answer(view: Served, parts: Relations) -> str:
    """SELECT of the rows that `serving.<view>` gives."""
    d = parts.dialect
    match view:
        case ChainedView():
            return chained_view.answered(view, d, answer(base_of(view, parts), parts), parts.now)
        case SequenceView():
            results = sequences.served(view, d, parts.built(view), "fresh")
            return f"WITH fresh AS ({parts.added(view)}) {sequences.final(view, d, f'({results})')}"
        case AggregateView():
            lookups = {column: _lookup(lookup.view, lookup.column, parts) for column, lookup in view.lookups.items()}
            return aggregates.final(view, d, merged(view, parts), lookups, parts.now)


def own_answer(view: View, parts: Relations) -> str:
    """SELECT of what the view's own partials say: a row per stored key, before windows, ranks and lookups."""
    if isinstance(view, AggregateView):
        return aggregates.answered(view, parts.dialect, merged(view, parts))
    return answer(view, parts)


def base_of(view: ChainedView, parts: Relations) -> Served:
    """The base of a chained view, in the version that is served."""
    return view.base if isinstance(view.base, ChainedView) else _newest(view.base.name, parts)


def stored_of(view: Served, parts: Relations) -> View:
    """The view whose partials the answer is made of, in the version that is served."""
    return stored_of(base_of(view, parts), parts) if isinstance(view, ChainedView) else view


def merged(view: AggregateView, parts: Relations) -> str:
    """The relation of the view's partials, of both layers, one row per stored key."""
    d = parts.dialect
    columns = listed(view.partial_schema.names, d)
    relations = [*parts.built(view), f"({parts.added(view)})"]
    both = " UNION ALL ".join(f"SELECT {columns} FROM {relation}" for relation in relations)
    return f"({aggregates.merged(view, d, f'({both})')})"


def _newest(name: str, parts: Relations) -> View:
    return max((view for view in parts.in_force if view.name == name), key=lambda view: view.version)


def _lookup(name: str, column: str, parts: Relations) -> str:
    """The relation of a looked-up view's answer: its key, and the column that is wanted."""
    other, d = _newest(name, parts), parts.dialect
    key = listed(other.served_keys, d)
    return f"(SELECT {key} AS looked_up, {quote(column, d)} AS found FROM ({answer(other, parts)}))"
