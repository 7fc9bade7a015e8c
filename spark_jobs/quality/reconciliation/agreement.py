"""The new batch against the old one plus speed, row by row, each difference with its cause.

sources of the publication in force + speed partials up to the new cut | the run's builds -> Agreement per view.
A cause is evidence, not a guess: the keys of exactly those records that the layers were bound to see differently, found
with the view's own expressions. What no cause covers is `unexplained`, and stops the run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

from spark_jobs.definitions.bound_view import RANK, AggregateView, SequenceView, View
from spark_jobs.engine import deferred_rows
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.source import Source
from spark_jobs.quality.reconciliation.causes import CORRECTED, DUPLICATE, NOT_COVERED, TAKEN_BACK, Causes
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Shape, compare, first, shape_of
from spark_jobs.serving.local_answer import LocalAnswers

LATE = "late_beyond_horizon"
WAITING = {deferred_rows.LATE: LATE, deferred_rows.HOT_KEY: "hot_key"}
D = Dialect.DUCKDB

ACCEPTED = "accepted_by_operator"
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Agreement:
    """One view. `causes`: cause -> rows that differ by it; `note` where nothing could be compared."""

    view: str
    old_cut: int
    new_cut: int
    rows: int
    differing: int
    causes: dict[str, int]
    unexplained: tuple[str, ...] = ()
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def agree(
    views: Views, old: Mapping[str, Source], new: Mapping[str, Source], changed: Mapping[str, Sequence[str]]
) -> Iterator[Agreement]:
    """One Agreement per view of `new`; `old`: the sources in force. Reads files only."""
    unbuilt = Source(None, None, 0, None)
    told = [view for view in views if view.id in new]
    before = {view.id: old.get(view.id, unbuilt) for view in told}
    cuts = {view.id: (before[view.id].cut, new[view.id].cut) for view in told}
    for old_cut, new_cut in sorted(set(cuts.values())):
        evidence = Causes(old_cut, new_cut, changed)
        built, spoken = LocalAnswers(views, new, new_cut), LocalAnswers(views, before, new_cut)
        for view in told:
            if cuts[view.id] == (old_cut, new_cut):
                yield _one(view, built, spoken, evidence)


def _one(view: View, built: LocalAnswers, spoken: LocalAnswers, evidence: Causes) -> Agreement:
    shape = shape_of(view)
    spoken.con.register("built", built.con.sql(built.own(view)).to_arrow_table())
    rows, differing = compare(spoken.con, "FROM built", spoken.own(view), shape)
    if not differing:
        return Agreement(view.id, evidence.old_cut, evidence.new_cut, rows, 0, {})
    attribute(spoken, view, shape, evidence, spoken.own)
    named = first(spoken.con, shape, ("batch", "speed"), where="cause IS NULL")
    counted = f"SELECT coalesce(cause, '{UNEXPLAINED}'), count(*) FROM differing GROUP BY 1 ORDER BY 1"
    causes = dict(spoken.con.execute(counted).fetchall())
    return Agreement(view.id, evidence.old_cut, evidence.new_cut, rows, differing, causes, tuple(named))


def attribute(spoken: LocalAnswers, view: View, shape: Shape, evidence: Causes, answer: Callable[[View], str]) -> None:
    """Add `cause` to `differing`; null where there is none.

    `spoken.con` has `differing` and the relation `built`, what `answer` (`spoken.own` or `spoken.answer`), without
    lookups, was compared with. One record may move many rows of windows and ranks, so all of them are suspects.
    """
    con = spoken.con
    con.execute("ALTER TABLE differing ADD COLUMN cause VARCHAR")
    seen = [(cause, keys) for cause in (NOT_COVERED, DUPLICATE, TAKEN_BACK) for keys in evidence.keys(cause, view)]
    for cause, keys in seen:
        _claim(con, view, shape, cause, keys)
    if seen:
        _disown(spoken, view, shape, evidence, pa.concat_tables([keys for _, keys in seen]), answer)
    for keys in evidence.keys(CORRECTED, view):
        _claim(con, view, shape, CORRECTED, keys)
    if isinstance(view, SequenceView):
        _claim_waiting(spoken, view, shape)
    elif view.bucket and not _is_reshaped(view, shape):
        _claim_days(con, view.bucket, [day for name in view.event_types for day in evidence.changed.get(name, ())])


def _disown(
    spoken: LocalAnswers, view: View, shape: Shape, evidence: Causes, seen: pa.Table, answer: Callable[[View], str]
) -> None:
    """Take the cause from rows that still differ when just the partials in question are made again: it is not it."""
    con = spoken.con
    con.execute("CREATE OR REPLACE TEMP TABLE claimed_rows AS FROM differing")
    names = ["lsn", *_stored_keys(view)]
    con.register("seen", seen.select(names))
    con.register("settled", evidence.settled(view, seen["lsn"]))
    same = " AND ".join(f"s.{quote(name, D)} IS NOT DISTINCT FROM e.{quote(name, D)}" for name in names)
    con.execute("CREATE OR REPLACE TEMP TABLE in_question AS SELECT DISTINCT * FROM seen")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE remade AS SELECT s.* FROM ({spoken.speed(view)}) s ANTI JOIN in_question e "
        f"ON {same} UNION ALL SELECT s.* FROM settled s SEMI JOIN in_question e ON {same}"
    )
    spoken.replaced[view.id] = "remade"
    compare(con, "FROM built", answer(view), shape)
    del spoken.replaced[view.id]
    still = " AND ".join(f"d.{quote(key, D)} IS NOT DISTINCT FROM claimed_rows.{quote(key, D)}" for key in shape.keys)
    con.execute(f"UPDATE claimed_rows SET cause = NULL WHERE EXISTS (SELECT 1 FROM differing d WHERE {still})")
    con.execute("CREATE OR REPLACE TEMP TABLE differing AS FROM claimed_rows")


def _stored_keys(view: View) -> list[str]:
    return list(view.keys) if isinstance(view, AggregateView) else ["key"]


def _is_reshaped(view: View, shape: Shape) -> bool:
    """Whether a row of the answer may stem from other keys than its own."""
    return isinstance(view, AggregateView) and (RANK in shape.values or list(shape.keys) != list(view.keys))


def _claim_waiting(spoken: LocalAnswers, view: SequenceView, shape: Shape) -> None:
    source = spoken.sources[view.id]
    for why, test in deferred_rows.deferred(D, source.horizon, source.hot_keys).items():
        found = spoken.con.sql(f"SELECT DISTINCT key FROM ({spoken.speed(view)}) WHERE {test}").to_arrow_table()
        _claim(spoken.con, view, shape, WAITING[why], found)


def _claim_days(con: duckdb.DuckDBPyConnection, bucket: str, days: Sequence[str]) -> None:
    listed_days = ", ".join(f"DATE '{day}'" for day in days) or "NULL"
    of = f"CAST({quote(bucket, D)} AS DATE) IN ({listed_days})"
    con.execute(f"UPDATE differing SET cause = '{CORRECTED}' WHERE cause IS NULL AND {of}")


def _claim(con: duckdb.DuckDBPyConnection, view: View, shape: Shape, cause: str, keys: pa.Table) -> None:
    """Give the cause to the rows with one of the keys that have none yet."""
    if _is_reshaped(view, shape):
        if keys.num_rows:
            con.execute(f"UPDATE differing SET cause = '{cause}' WHERE cause IS NULL")
        return
    names = _stored_keys(view)
    con.register("claimed", keys.select(names))
    pairs = " AND ".join(
        f"c.{quote(theirs, D)} IS NOT DISTINCT FROM differing.{quote(ours, D)}"
        for ours, theirs in zip(shape.keys, names, strict=True)
    )
    distinct = f"(SELECT DISTINCT {listed(names, D)} FROM claimed)"
    con.execute(f"UPDATE differing SET cause = '{cause}' FROM {distinct} c WHERE cause IS NULL AND {pairs}")
    con.unregister("claimed")


def accepted(found: Agreement, reason: str) -> Agreement:
    """The same with its unexplained rows accepted, as an operator said."""
    if not found.causes.get(UNEXPLAINED):
        return found
    causes = {ACCEPTED if cause == UNEXPLAINED else cause: rows for cause, rows in found.causes.items()}
    return Agreement(**{**found.as_dict(), "causes": causes, "note": f"{ACCEPTED}: {reason}"})
