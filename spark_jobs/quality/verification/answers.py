"""I3: what readers see is what the oracle says, or what the log gives when it is recomputed; row by row.

rows of a pin at head | log -> expected (oracle, or recomputed) -> one Finding per serving view, which says by which.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from random import Random

import pyarrow as pa

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger.store import Store
from spark_jobs.quality.reconciliation.agreement import attribute
from spark_jobs.quality.reconciliation.causes import Causes
from spark_jobs.quality.verification.expected import Expected
from spark_jobs.quality.verification.findings import Absent, Check, Finding, Law, State, Unable
from spark_jobs.quality.verification.pinned import Pinned, unbuilt_too
from spark_jobs.quality.verification.scope import Scope
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Shape, compare, counts_by_cause, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import servable

TOLERANCE = 1e-9
"""Relative, for floating values: the second way does its arithmetic in another order."""
LIMITED = "within a named limit"
BY_SPARK = 4
"""How many views of a sample are read by Spark, at half a second to a second each; the others by the read server."""


@contextmanager
def opened(store: Store, views: Views, scope: Callable[[], Scope], seed: int | None = None) -> Iterator[list[Check]]:
    """The checks, one per view that is served, or would be if nothing is published; the pin is gone afterwards.

    seed: chooses the views that are read by Spark; None: all are.
    """
    asked = servable(views, unbuilt_too(store, views, store.current_sources()))
    by_spark = asked if seed is None else Random(seed).sample(asked, min(BY_SPARK, len(asked)))
    pinned = Pinned(store, views, scope, asked, frozenset(view.name for view in by_spark))
    with pinned.stack:
        yield [(law_of(view), partial(is_as_expected, view, pinned)) for view in asked]


def law_of(view: Served) -> Law:
    return Law("I3", f"{view.name} is what its records give", "rows")


def is_as_expected(view: Served, pinned: Pinned) -> Finding:
    """Every row of the view, read through the pin, against those of the second way."""
    if not pinned.pin.head:
        raise Absent("nothing has landed yet")
    expected, (served, door) = pinned.second_way.expected(view), pinned.answer(view)
    finding = _against(view, pinned, expected, served)
    return replace(finding, note=f"{finding.note}; read by {door}")


def _against(view: Served, pinned: Pinned, expected: Expected, served: pa.Table) -> Finding:
    """The finding; what a chained view breaches may be by the limits of its base."""
    where = pinned.condition(view, Dialect.DUCKDB)
    finding = compared(view, served, expected, pinned.merged, pinned.causes_past, where)
    if finding.state is State.HOLDS or not isinstance(view, ChainedView):
        return finding
    below = is_as_expected(serving_plan.base_of(view, pinned.merged), pinned)
    return inherited(view, served, finding, below, pinned.merged)


def inherited(view: ChainedView, served: pa.Table, finding: Finding, below: Finding, merged: LocalAnswers) -> Finding:
    """How a chained view differs by the named limits of its base alone; `below`: the finding of the base."""
    merged.con.register("served", served)
    strays = compare(merged.con, merged.answer(view), "FROM served", _shape(view))
    if strays.differing or below.state is not State.HOLDS or LIMITED not in below.note:
        return finding
    return law_of(view).finding(finding.checked, (), note=f"{finding.note}; of {view.base.name}: {below.note}")


def compared(
    view: Served,
    served: pa.Table,
    expected: Expected,
    merged: LocalAnswers,
    causes_past: Callable[[int], Causes],
    where: str = "true",
) -> Finding:
    """`merged`: the same sources and head; `causes_past`: a cut -> the causes of named limits, made when needed.

    where: the rows of the answer that `served` and `expected` have.
    """
    law, names = law_of(view), (expected.by, "served")
    shape = _shape(view, expected.approximate)
    if missing := [name for name in shape.columns if name not in expected.rows.column_names]:
        raise Unable(f"{expected.by} does not know the columns {', '.join(missing)}")
    if missing := [name for name in shape.columns if name not in served.column_names]:
        return law.finding(0, [f"the serving view lacks the columns {', '.join(missing)}"])
    con = merged.con
    con.register("served", served)
    con.register("built", expected.rows)
    cut = merged.sources[serving_plan.stored_of(view, merged).id].cut
    note = f"by {expected.by}; head {merged.head}, cut {cut}"
    comparison = compare(con, "FROM built", "FROM served", shape)
    if not comparison.differing or isinstance(view, ChainedView):
        return law.finding(comparison.rows, comparison.first(names), comparison.differing, note)
    own = replace(shape, values=[name for name in shape.values if name not in view.lookups])

    def answer(sources: LocalAnswers, of: View) -> str:
        return f"SELECT * FROM ({sources.answer(of)}) WHERE {where}"

    strays = compare(con, answer(merged, view), "FROM served", shape, "strays")  # not even what the files give (I20)
    attributed = attribute(merged, view, replace(comparison, shape=own), causes_past(cut), answer, strays)
    said = replace(attributed, shape=shape).first(names, where="cause IS NULL")
    causes = counts_by_cause(attributed)
    within = "".join(f"; {LIMITED}: {count:,} rows, {cause}" for cause, count in causes.items() if cause)
    return law.finding(comparison.rows, said, causes.get(None, 0), note + within)


def _shape(view: Served, approximate: Mapping[str, float] | None = None) -> Shape:
    return replace(shape_of(view, served=True, tolerance=TOLERANCE), approximate=approximate or {})
