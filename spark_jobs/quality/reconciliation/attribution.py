"""Say why rows differ: each differing row gets the first cause that claims its key, by one query.

records behind each cause --the view's own expressions--> claims (key, cause, rank) -> the rows with their `cause`.
"""

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from spark_jobs.definitions.bound_view import RANK, View
from spark_jobs.engine import deferred_rows
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.quality.reconciliation.causes import CORRECTED, DUPLICATE, NEWER_SCHEMA, NOT_COVERED, Causes
from spark_jobs.serving.compare import Comparison, compare
from spark_jobs.serving.local_answer import LocalAnswers

D = Dialect.DUCKDB

LATE, HOT_KEY = "late_beyond_horizon", "hot_key"
DEFERRED = {deferred_rows.LATE: LATE, deferred_rows.HOT_KEY: HOT_KEY}
OF_PARTIALS = (NOT_COVERED, DUPLICATE, NEWER_SCHEMA)
"""Causes in partials of the speed layer: rows that they explain agree once those partials are made again."""
RANKED = (*OF_PARTIALS, CORRECTED, LATE, HOT_KEY)
"""If several causes claim a row, the first one gets it."""


class Attributed(Comparison):
    """Differing rows with one more column, `cause`; null where there is none."""

    @property
    def counts(self) -> Mapping[str | None, int]:
        """Cause -> rows that differ by it."""
        return dict(self.con.execute(f"SELECT cause, count(*) FROM {self.name} GROUP BY ALL ORDER BY ALL").fetchall())


def attribute(
    speed: LocalAnswers,
    view: View,
    compared: Comparison,
    causes: Causes,
    answer: Callable[[LocalAnswers, View], str],
    strays: Comparison | None = None,
) -> Attributed:
    """The rows of `compared` with their cause, as a table of `speed.con`.

    There `compared` set the relation `built` against `answer(speed, view)`, which is `own` or `answer` without lookups.
    No cause has a row of `strays`. One record may move many rows of windows and ranks, so there it claims all of them.
    """
    con, shape = compared.con, compared.shape
    claims = _Claims(view, compared)
    partials = claims.add(causes, speed)
    still_differing = None
    if partials is not None:
        remade = speed.with_partials(view, _remade(speed, view, causes, partials))
        still_differing = compare(con, "FROM built", answer(remade, view), shape, "still_differing")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE attributed AS SELECT d.*, c.cause FROM {compared.name} d LEFT JOIN claims c "
        f"ON {_same('c', 'd', claims.keys.values())} AND NOT {_among(strays)} "
        f"AND NOT (c.rank < {len(OF_PARTIALS)} AND {_among(still_differing)}) "
        "QUALIFY row_number() OVER (PARTITION BY d.rowid ORDER BY c.rank) = 1"
    )
    return Attributed(con, shape, "attributed", compared.rows, compared.differing)


class _Claims:
    """The table `claims`: a key as the answer names it, the cause that claims it, and its rank.

    If a row of the answer may stem from other keys than its own, claims have no key and cover every row.
    """

    def __init__(self, view: View, compared: Comparison) -> None:
        self.view, self.con, self.compared = view, compared.con, compared
        shape = compared.shape
        is_reshaped = RANK in shape.values or len(shape.keys) != len(view.stored_keys)
        self.keys = {} if is_reshaped else dict(zip(view.stored_keys, shape.keys, strict=True))
        columns = ", ".join([*(quote(name, D) for name in self.keys.values()), "'' AS cause", "0 AS rank"])
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE claims AS SELECT {columns} FROM {compared.name} LIMIT 0")

    def add(self, causes: Causes, speed: LocalAnswers) -> pa.Table | None:
        """All claims. Returns lsn and key of each partial of the speed layer in question; None where none is."""
        in_question = []
        for cause in (*OF_PARTIALS, CORRECTED):
            for partials in causes.keys(cause, self.view):
                self.con.register("claimed", partials)
                self._insert(cause, self.keys, "claimed")
                in_question += [partials.select(["lsn", *self.view.stored_keys])] if cause in OF_PARTIALS else []
        if self.keys and self.view.bucket:
            days = [day for name in self.view.event_types for day in causes.changed.get(name, ())]
            within = ", ".join(f"DATE '{day}'" for day in days) or "NULL"
            rows = f"{self.compared.name} WHERE CAST({quote(self.view.bucket, D)} AS DATE) IN ({within})"
            self._insert(CORRECTED, dict.fromkeys(self.keys.values()), rows)
        source = speed.sources[self.view.id]
        for why, test in deferred_rows.deferred(D, source.horizon, source.hot_keys).items():
            self._insert(DEFERRED[why], self.keys, f"({speed.speed(self.view)}) WHERE {test}")
        return pa.concat_tables(in_question) if in_question else None

    def _insert(self, cause: str, keys: Mapping[str, str | None], rows: str) -> None:
        """Claim the keys of `rows` (column -> its name in the answer, None for the same)."""
        columns = [f"{quote(name, D)} AS {quote(served or name, D)}" for name, served in keys.items()]
        columns += [f"'{cause}' AS cause", f"{RANKED.index(cause)} AS rank"]
        self.con.execute(f"INSERT INTO claims BY NAME SELECT DISTINCT {', '.join(columns)} FROM {rows}")


def _remade(speed: LocalAnswers, view: View, causes: Causes, in_question: pa.Table) -> str:
    """A table of the view's speed partials, in which just those in question are as the batch layer settled them."""
    names = in_question.column_names
    speed.con.register("in_question", in_question)
    speed.con.register("settled", causes.settled(view, in_question["lsn"]))
    both = _same("s", "q", names)
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
    return f"EXISTS (SELECT 1 FROM {differing.name} o WHERE {_same('o', 'd', differing.shape.keys)})"


def _same(left: str, right: str, names: Iterable[str]) -> str:
    return " AND ".join(f"{left}.{q} IS NOT DISTINCT FROM {right}.{q}" for q in (quote(n, D) for n in names)) or "true"
