"""Compare the new batch with the old one plus speed, row by row; name the cause of each difference.

sources of the publication in force + speed partials up to the new cut | the run's builds -> Agreement per view.
records behind each cause --the view's own expressions--> claims (key, cause, rank) -> the rows with their `cause`.
A cause is proven by records, not guessed: exactly those that the layers were bound to see differently. A row that no
cause covers is `unexplained`, and stops the run.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from spark_jobs.batch.build_tasks import Days
from spark_jobs.definitions.bound_view import RANK, View
from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.runs import UNEXPLAINED
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.quality.reconciliation import rejects
from spark_jobs.quality.reconciliation.by_keys import compare_by_keys, same
from spark_jobs.quality.reconciliation.causes import (
    CORRECTED,
    DUPLICATE,
    NEWER_SCHEMA,
    NOT_COVERED,
    OUT_OF_QUARANTINE,
    REVISED,
    Causes,
)
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Comparison, counts_by_cause, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import duckdb_reader

D = Dialect.DUCKDB

LATE, HOT_KEY = "late_beyond_horizon", "hot_key"
DEFERRED = {sequences.BEFORE_HORIZON: LATE, sequences.HOT_KEY: HOT_KEY}
OF_PARTIALS = (NOT_COVERED, DUPLICATE, REVISED, NEWER_SCHEMA)
"""Causes in partials of the speed layer: rows that they explain agree once those partials are made again."""
RANKED = (*OF_PARTIALS, OUT_OF_QUARANTINE, CORRECTED, LATE, HOT_KEY)
"""If several causes claim a row, the first one gets it."""
ONE_OF = 100
"""One of so many keys that nothing touched is compared as well."""
ACCEPTED = "accepted_by_operator"


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


def agree(
    views: Views,
    old: Mapping[str, Source],
    new: Mapping[str, Source],
    changed: Mapping[str, Days],
    *,
    whole: bool = False,
) -> Iterator[Agreement]:
    """One Agreement per view of `new`; `old`: the sources in force. Reads files only.

    changed: view id -> the days whose facts were replaced since its old source was built.
    It compares the keys that something touched between the two cuts, and a sample of the others; or the `whole`.
    """
    before = with_unbuilt(new, old)
    alike: dict[tuple[int, int, str], list[View]] = defaultdict(list)
    for view in views:
        if view.id in new:
            days = json.dumps(changed.get(view.id, {}), sort_keys=True)
            alike[before[view.id].cut, new[view.id].cut, days].append(view)
    for (old_cut, new_cut, days), of in sorted(alike.items()):
        causes = Causes(old_cut, new_cut, json.loads(days))
        built, speed = LocalAnswers(views, new, new_cut), LocalAnswers(views, before, new_cut)
        for view in of:
            yield _with_rejects(_agreement(view, built, speed, causes, whole), *rejects.differing(view, causes))


def _with_rejects(agreement: Agreement, differing: int, said: tuple[str, ...]) -> Agreement:
    """The agreement, with the facts that only one layer's view rejects as unexplained."""
    if not differing:
        return agreement
    counts = agreement.causes | {UNEXPLAINED: agreement.causes.get(UNEXPLAINED, 0) + differing}
    named, all_ = (*agreement.unexplained, *said), agreement.differing + differing
    return replace(agreement, differing=all_, causes=counts, unexplained=named)


def _agreement(view: View, built: LocalAnswers, speed: LocalAnswers, causes: Causes, whole: bool) -> Agreement:
    if not whole and speed.sources[view.id].versions and view.stored_keys:
        _look_at(view, built, speed, causes)
        built, speed = built.with_keys(view, "looked_at"), speed.with_keys(view, "looked_at")
    duckdb_reader.copy(built.con.sql(built.own(view)), speed.con, "built")
    compared = compare_by_keys(speed, view, LocalAnswers.own, shape_of(view))
    agreement = Agreement(view.id, causes.old_cut, causes.new_cut, compared.rows, compared.differing, {})
    if not compared.differing:
        return agreement
    attributed = attribute(speed, view, compared, causes, LocalAnswers.own)
    counts = {cause or UNEXPLAINED: rows for cause, rows in counts_by_cause(attributed).items()}
    named = attributed.first(("batch", "speed"), where="cause IS NULL")
    return replace(agreement, causes=counts, unexplained=tuple(named))


def _look_at(view: View, built: LocalAnswers, speed: LocalAnswers, causes: Causes) -> None:
    """Make the table `looked_at` in both: keys of the view that a record touched between the cuts, and some others.

    These are the keys of replaced days, and a sample, another one for each cut.
    """
    keys = listed(view.stored_keys, D)
    sampled = f"hash({keys}) % {ONE_OF} = {causes.new_cut % ONE_OF}"
    days = sorted({day for name in view.event_types for day in causes.changed.get(name, ())})
    if days and view.bucket:
        within = ", ".join(f"DATE '{day}'" for day in days)
        sampled += f" OR CAST({quote(view.bucket, D)} AS DATE) IN ({within})"
    elif days:
        sampled = "true"
    some = f"SELECT DISTINCT {keys} FROM {{}} WHERE {sampled}"
    speed.con.execute(f"CREATE OR REPLACE TEMP TABLE looked_at AS SELECT DISTINCT {keys} FROM ({speed.speed(view)})")
    for relation in speed.built(view):
        speed.con.execute(f"INSERT INTO looked_at {some.format(relation)}")
    for relation in built.built(view):
        duckdb_reader.copy(built.con.sql(some.format(relation)), speed.con, "others")
        speed.con.execute("INSERT INTO looked_at FROM others")
    for cause in OF_PARTIALS:
        for proven in causes.keys(cause, view):
            speed.con.register("proven", proven)
            speed.con.execute(f"INSERT INTO looked_at SELECT {keys} FROM proven")
    duckdb_reader.copy(speed.con.sql("SELECT DISTINCT * FROM looked_at"), built.con, "looked_at")


def accepted(agreement: Agreement, reason: str) -> Agreement:
    """The same agreement, its unexplained rows accepted by an operator."""
    if not agreement.causes.get(UNEXPLAINED):
        return agreement
    causes = {ACCEPTED if cause == UNEXPLAINED else cause: rows for cause, rows in agreement.causes.items()}
    return replace(agreement, causes=causes, note=f"{ACCEPTED}: {reason}")


def attribute(
    speed: LocalAnswers,
    view: View,
    compared: Comparison,
    causes: Causes,
    answer: Callable[[LocalAnswers, View], str],
    strays: Comparison | None = None,
) -> Comparison:
    """The rows of `compared` with one more column, `cause`, null where there is none; a table of `speed.con`.

    There `compared` set the relation `built` against `answer(speed, view)`, which is `own` or `answer` without lookups.
    No cause has a row of `strays`. One record may move many rows of windows and ranks, so there it claims all of them.
    """
    con, shape = compared.con, compared.shape
    is_reshaped = RANK in shape.values or len(shape.keys) != len(view.stored_keys)
    keys = {} if is_reshaped else dict(zip(view.stored_keys, shape.keys, strict=True))
    partials = _claim(view, compared, keys, causes, speed)
    still_differing = None
    if partials is not None:
        remade, in_doubt = speed.with_partials(view, _remade(speed, view, causes, partials)), None
        if keys:  # the others' rows no such cause claims
            con.execute(f"CREATE OR REPLACE TEMP TABLE in_doubt AS SELECT DISTINCT {listed(keys, D)} FROM in_question")
            in_doubt = ("in_doubt", keys)
        still_differing = compare_by_keys(remade, view, answer, shape, "still_differing", in_doubt)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE attributed AS SELECT d.*, c.cause FROM {compared.name} d LEFT JOIN claims c "
        f"ON {same('c', 'd', keys.values())} AND NOT {_among(strays)} "
        f"AND NOT (c.rank < {len(OF_PARTIALS)} AND {_among(still_differing)}) "
        "QUALIFY row_number() OVER (PARTITION BY d.rowid ORDER BY c.rank) = 1"
    )
    return Comparison(con, shape, "attributed", compared.rows, compared.differing)


def _claim(
    view: View, compared: Comparison, keys: Mapping[str, str], causes: Causes, speed: LocalAnswers
) -> pa.Table | None:
    """Make the table `claims`: a key as the answer names it, the cause that claims it, and its rank.

    keys: stored key -> its name in the answer. If a row of the answer may stem from other keys than its own, there are
    none, and a claim covers every row. Returns lsn and key of each speed partial in question; None where none is.
    """
    con = compared.con
    columns = ", ".join([*(quote(name, D) for name in keys.values()), "'' AS cause", "0 AS rank"])
    con.execute(f"CREATE OR REPLACE TEMP TABLE claims AS SELECT {columns} FROM {compared.name} LIMIT 0")
    in_question = []
    for cause in (*OF_PARTIALS, OUT_OF_QUARANTINE, CORRECTED):
        for partials in causes.keys(cause, view):
            con.register("claimed", partials)
            _insert(con, cause, keys, "claimed")
            in_question += [partials.select(["lsn", *view.stored_keys])] if cause in OF_PARTIALS else []
    if keys and view.bucket:
        days = [day for name in view.event_types for day in causes.changed.get(name, ())]
        within = ", ".join(f"DATE '{day}'" for day in days) or "NULL"
        rows = f"{compared.name} WHERE CAST({quote(view.bucket, D)} AS DATE) IN ({within})"
        _insert(con, CORRECTED, {name: name for name in keys.values()}, rows)
    source = speed.sources[view.id]
    for why, test in sequences.deferred(D, source.horizon, source.hot_keys).items():
        _insert(con, DEFERRED[why], keys, f"({speed.speed(view)}) WHERE {test}")
    return pa.concat_tables(in_question) if in_question else None


def _insert(con: duckdb.DuckDBPyConnection, cause: str, keys: Mapping[str, str], rows: str) -> None:
    """Claim the keys of `rows` (column -> its name in the answer)."""
    columns = [f"{quote(name, D)} AS {quote(served, D)}" for name, served in keys.items()]
    columns += [f"'{cause}' AS cause", f"{RANKED.index(cause)} AS rank"]
    con.execute(f"INSERT INTO claims BY NAME SELECT DISTINCT {', '.join(columns)} FROM {rows}")


def _remade(speed: LocalAnswers, view: View, causes: Causes, in_question: pa.Table) -> str:
    """A table of the view's speed partials, in which just those in question are as the batch layer settled them."""
    names = in_question.column_names
    speed.con.register("in_question", in_question)
    speed.con.register("settled", causes.settled(view, in_question["lsn"]))
    both = same("s", "q", names)
    speed.con.execute(
        f"CREATE OR REPLACE TEMP TABLE remade AS WITH q AS (SELECT DISTINCT {listed(names, D)} FROM in_question) "
        f"SELECT s.* FROM ({speed.speed(view)}) s ANTI JOIN q ON {both} "
        f"UNION ALL SELECT s.* FROM settled s SEMI JOIN q ON {both}"
    )
    return "remade"


def _among(differing: Comparison | None) -> str:
    """SQL: whether a row `d` has the key of one that differs there."""
    if differing is None:
        return "false"
    return f"EXISTS (SELECT 1 FROM {differing.name} o WHERE {same('o', 'd', differing.shape.keys)})"
