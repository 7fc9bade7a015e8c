"""SQL of a Sequence: rows and stretches, for DuckDB; results, and the rule that serves them, for Spark as well.

facts --rows--> stored rows --resolve--> results --stretches--> both with stretch_end --served--> kept + re-resolved.
The rule and its reasons are in docs/sequences.md; times are BIGINT microseconds, intervals are closed at both ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from spark_jobs.definitions.bound_view import FOREVER, BoundRow, SequenceView
from spark_jobs.engine.aggregates import COORDINATES, Fault
from spark_jobs.expressions.dialect import (
    TIE_OF_EVENTS,
    Dialect,
    failing,
    instant,
    listed,
    micros,
    null_of,
    quote,
    rendered,
    type_of,
)
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.expressions.query.render import RELATION

DUCKDB = Dialect.DUCKDB
BEFORE_HORIZON, HOT_KEY = "before_horizon", "hot_key"


def rows(view: SequenceView, facts_of: Mapping[str, str], positions: Sequence[str] = ("lsn",)) -> str:
    """The stored row of every fact in `facts_of` (event type -> relation; at least one of the view's), after its
    `positions` (columns of the fact)."""
    present = [row for row in view.rows if row.declaration.of in facts_of]
    return " UNION ALL ".join(_row(view, row, positions, _facts(row, facts_of)) for row in present)


def _row(view: SequenceView, row: BoundRow, positions: Sequence[str], facts: str) -> str:
    ts = f"CAST({micros(rendered(row.ts, DUCKDB), DUCKDB)} AS BIGINT)"
    made = {name: rendered(column, DUCKDB) for name, column in row.columns.items()}
    columns = [
        f"{made.get(name) or null_of(kind, DUCKDB)} AS {quote(name, DUCKDB)}" for name, kind in view.columns.items()
    ]
    fixed = [f"{rendered(row.key, DUCKDB)} AS key", f"{ts} AS ts", f"'{row.kind}' AS kind", f"{TIE_OF_EVENTS} AS tie"]
    where = [f"({rendered(row.where, DUCKDB)})"] if row.where else []
    where += [f"({failed}) IS NULL"] if (failed := failed_at(row)) else []
    clause = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join([listed(positions, DUCKDB), *fixed, *columns])} FROM {facts}{clause}"


def side_input_key(event_type: str) -> str:
    """The name of all facts of a side input, beside the name of those that are to become rows."""
    return f"side_input_{event_type}"


def _facts(row: BoundRow, facts_of: Mapping[str, str]) -> str:
    """The relation of the row's facts, each with its side input: the newest fact that landed before it."""
    facts, side_input = facts_of[row.declaration.of], row.declaration.side_input
    if side_input is None:
        return facts
    known = facts_of.get(side_input_key(side_input), facts_of.get(side_input))
    if known is None:
        nothing = ", ".join(
            f"{null_of(kind, DUCKDB)} AS {quote(name, DUCKDB)}" for name, kind in row.side_columns.items()
        )
        return f"(SELECT *, {nothing} FROM {facts})"
    after = f"lead(lsn, 1, CAST({FOREVER} AS BIGINT)) OVER (ORDER BY {listed(COORDINATES, DUCKDB)})"
    spans = f"SELECT lsn AS since_lsn, {after} AS until_lsn, {listed(row.side_columns, DUCKDB)} FROM {known}"
    columns = ", ".join(f"g.{quote(name, DUCKDB)}" for name in row.side_columns)
    return (
        f"(SELECT f.*, {columns} FROM {facts} f LEFT JOIN ({spans}) g ON f.lsn > g.since_lsn AND f.lsn <= g.until_lsn)"
    )


def failed_at(row: BoundRow) -> str | None:
    """SQL: the part of the row at which a fact's evaluation fails, or NULL; None where nothing can fail.

    A row needs a key and a time.
    """
    needed = {"key": row.key, "ts": row.ts}
    parts = needed | {f"column {name}": column for name, column in row.columns.items()}
    tests = [(name, failing(part, DUCKDB)) for name, part in parts.items()]
    tests += [
        (name, f"{rendered(part, DUCKDB)} IS NULL") for name, part in needed.items() if not row.event.never_null(part)
    ]
    cases = [f"WHEN {test} THEN '{row.kind} {name}'" for name, test in tests if test]
    return f"CASE {' '.join(cases)} END" if cases else None


def faults(view: SequenceView, facts_of: Mapping[str, str]) -> list[Fault]:
    """Where the conditions and the parts of the rows may fail, each over the relation of its facts."""
    rows = [row for row in view.rows if row.declaration.of in facts_of]
    return [(f"{row.kind} where", row.where, failed_at(row), _facts(row, facts_of)) for row in rows]


def resolve(view: SequenceView, d: Dialect, relation: str) -> str:
    """The results of the rows in `relation`: key, opened_at, closes_at and the view's columns."""
    if view.resolve is not None:
        query = rendered(view.resolve, d).replace(RELATION, relation)
        return f"SELECT {listed(view.result_kinds, d)} FROM ({query})"
    columns = [
        f"{micros(quote(name, d), d)} AS {quote(name, d)}" if kind == "TIMESTAMP" else quote(name, d)
        for name, kind in view.columns.items()
    ]
    return f"SELECT {', '.join(['key', 'ts AS opened_at', 'ts AS closes_at', *columns])} FROM {relation}"


def stretches(view: SequenceView, rows: str, results: str) -> str:
    """SELECT of the stretches of the relations `rows` and `results`, for DuckDB: key, begins_at, stretch_end.

    A stretch is a run of overlapping intervals of one key; a carried row does not make one. Equal spans come in any
    order, and not in the same one for both windows. So the second goes by RANGE: all of them see the beginning that
    the first of them got.
    """
    spans = (
        f"SELECT key, ts AS span_start, ts + {_reach(view)} AS span_end FROM {rows}{not_carried(view)} "
        f"UNION ALL SELECT key, opened_at AS span_start, closes_at AS span_end FROM {results}"
    )
    earlier = "OVER (PARTITION BY key ORDER BY span_start, span_end ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    so_far = "OVER (PARTITION BY key ORDER BY span_start, span_end RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    begins = f"CASE WHEN span_start <= max(span_end) {earlier} THEN NULL ELSE span_start END"
    stretched = f"SELECT *, max(begins) {so_far} AS begins_at FROM (SELECT *, {begins} AS begins FROM ({spans}))"
    return f"SELECT key, begins_at, max(span_end) AS stretch_end FROM ({stretched}) GROUP BY key, begins_at"


def stretched(view: SequenceView, rows: str, results: str, ends: str | None = None) -> tuple[str, str]:
    """SELECTs of all `rows` (with lsn) and of all `results`, each with its `stretch_end`, for DuckDB.

    ends: the relation of their stretches, where it is there. A carried row is in force until the next of its kind.
    """
    ends, row_columns = ends or f"({stretches(view, rows, results)})", ["lsn", *view.row_kinds]
    of_rows = _ended(row_columns, rows, "ts", ends) + not_carried(view)
    if carried := _carried(view):
        until = f"coalesce(lead(ts) OVER (PARTITION BY key, kind ORDER BY ts, tie), {FOREVER})"
        columns = listed(row_columns, DUCKDB)
        of_rows += f" UNION ALL SELECT {columns}, {until} AS stretch_end FROM {rows} WHERE kind IN ({carried})"
    return of_rows, _ended(list(view.result_kinds), results, "opened_at", ends)


def _ended(columns: Iterable[str], relation: str, at: str, ends: str) -> str:
    """Each row or result with the end of the stretch in which it is: that of its key which began last."""
    own = ", ".join(f"r.{quote(name, DUCKDB)}" for name in columns)
    last = f"r.key = e.key AND r.{at} >= e.begins_at"
    return f"SELECT {own}, e.stretch_end FROM {relation} r ASOF JOIN {ends} e ON {last}"


def _reach(view: SequenceView) -> str:
    """Rows of unbounded reach are covered by a result, so that their own interval is one instant."""
    cases = " ".join(f"WHEN '{row.kind}' THEN {row.reach or 0}" for row in view.rows if not row.declaration.carried)
    return f"CASE kind {cases} END" if cases else "0"


def _carried(view: SequenceView) -> str:
    return ", ".join(f"'{row.kind}'" for row in view.rows if row.declaration.carried)


def not_carried(view: SequenceView) -> str:
    return f" WHERE kind NOT IN ({_carried(view)})" if _carried(view) else ""


def served(view: SequenceView, d: Dialect, built: Sequence[str], new: str) -> str:
    """The results in force: those that `new` rows leave alone, and what they touch resolved anew.

    `built`: the relations of rows and of results, with their `stretch_end`; none before any build.
    """
    if not built:
        return resolve(view, d, new)
    rows, results = built
    resolved = resolve(view, d, f"({live(view.row_kinds, d, rows, new)})")
    return f"{kept(view.result_kinds, d, results, new)} UNION ALL {resolved}"


def live(columns: Iterable[str], d: Dialect, stored: str, new: str) -> str:
    """The rows to resolve: all of `new`, and those of `stored` whose stretch reaches the key's first new row."""
    names = listed(columns, d)
    return f"SELECT {names} FROM ({_reached('SEMI', stored, new)}) UNION ALL SELECT {names} FROM {new}"


def kept(columns: Iterable[str], d: Dialect, stored: str, new: str) -> str:
    """What is `stored`, rows or results, and left alone by the `new` rows."""
    return f"SELECT {listed(columns, d)} FROM ({_reached('ANTI', stored, new)})"


def _reached(join: str, stored: str, new: str) -> str:
    """The stored rows or results (SEMI) whose stretch reaches the key's first new row, or (ANTI) all others."""
    first = f"(SELECT key, min(ts) AS s0 FROM {new} GROUP BY key)"
    return f"SELECT r.* FROM {stored} r {join} JOIN {first} t ON r.key = t.key AND r.stretch_end >= t.s0"


def final(view: SequenceView, d: Dialect, relation: str) -> str:
    """The answer over results: the key by its name, instants as TIMESTAMP, hidden results left out."""
    columns = [f"key AS {quote(view.key, d)}"]
    for name, kind in view.results.items():
        value = instant(quote(name, d), d) if kind == "TIMESTAMP" else quote(name, d)
        columns.append(f"{value} AS {quote(name, d)}")
    answers = f"SELECT {', '.join(columns)} FROM {relation}"
    if view.hide is None:
        return answers
    return f"SELECT * FROM ({answers}) WHERE NOT coalesce({rendered(view.hide, d)}, false)"


def digest(d: Dialect) -> str:
    """SQL of the name of a key in serving SQL: 32 hexadecimal digits, as the key's own text is untrusted."""
    return f"md5(CAST(key AS {type_of('STRING', d)}))"


def deferred(d: Dialect, horizon: datetime | None, hot_keys: Sequence[str]) -> dict[str, str]:
    """Reason -> SQL: whether a new row is deferred for it to the next build, as it is before the horizon or of a hot
    key; empty if none can be (docs/sequences.md, "Limits"). Raises ValueError for a bad digest."""
    tests = {} if horizon is None else {BEFORE_HORIZON: f"ts < {since_epoch(horizon)}"}
    if hot_keys:
        named = ", ".join(f"'{bytes.fromhex(key).hex()}'" for key in hot_keys)
        tests[HOT_KEY] = f"{digest(d)} IN ({named})"
    return tests


def counted_now(rows: str, d: Dialect, horizon: datetime | None, hot_keys: Sequence[str]) -> str:
    """SELECT of the rows of the SELECT `rows` that count at once."""
    tests = deferred(d, horizon, hot_keys).values()
    return f"SELECT * FROM ({rows}) WHERE {' AND '.join(f'NOT ({test})' for test in tests)}" if tests else rows
