"""Random queries of the positive list, and rows for them.

size -> text of a query over ROWS; rows -> a table of so many ROWS
"""

import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations.instant import MAX_INSTANT, MIN_INSTANT
from spark_jobs.expressions.query.typed import Relation
from tests.laws.expression_grammar import KINDS, ORDERED, texts
from tests.laws.expression_values import COLUMNS, random_tables

_OWN: dict[str, Kind] = {"key": "BIGINT", "ts": "BIGINT", "kind": "STRING", "tie": "STRING"}
ROWS = Relation({**_OWN, **COLUMNS}, frozenset({"tie"}))
_HOUR = 3_600_000_000
_GROUPS = ("kind", "p", "q", "s", "i", "day", "t")
_OF_ANY = ("lag({})", "lag({}, 3)", "lead({})", "lead({}, 2)", "first_value({})", "last_value({})", "count({})")
_ZEROS = "CASE WHEN d < 0 THEN -0e0 WHEN d >= 0 THEN 0e0 END"
_FRAMES = (
    *("UNBOUNDED PRECEDING AND {n} PRECEDING", "{m} PRECEDING AND {n} PRECEDING", "{n} PRECEDING AND CURRENT ROW"),
    *("{n} PRECEDING AND {m} FOLLOWING", "CURRENT ROW AND {m} FOLLOWING", "{m} FOLLOWING AND UNBOUNDED FOLLOWING"),
)


@st.composite
def row_tables(draw: st.DrawFn, rows: int) -> pa.Table:
    """Few keys, and instants that lie half an hour apart, together, or at the ends of time."""
    instants = st.integers(0, 8).map(lambda n: n * _HOUR // 2) | st.sampled_from([MIN_INSTANT, MAX_INSTANT])
    drawn = [st.integers(1, 4), instants, st.sampled_from(["a", "b"])]
    columns = [draw(st.lists(values, min_size=rows, max_size=rows)) for values in drawn]
    columns.append([f"{place:04d}" for place in draw(st.permutations(range(rows)))])
    return pa.table([*map(pa.array, columns), *draw(random_tables(rows)).columns], list(ROWS.columns))


@st.composite
def queries_of_rows(draw: st.DrawFn, size: int) -> str:
    """Values of single rows, and windows over those that a condition lets through."""
    values = [draw(texts(draw(st.sampled_from(KINDS)), 2)) for _ in range(size)]
    windows = [f"count(*) OVER (PARTITION BY key ORDER BY {_ZEROS})", *[draw(_windows()) for _ in range(size)]]
    where = f"({draw(texts('BOOLEAN', 1))}) OR kind = 'a'"
    return (
        f"WITH made AS (SELECT *, {_named('c', values)} FROM {{rows}} WHERE {where}) "
        f"SELECT *, {_named('w', windows)} FROM made WINDOW total AS (PARTITION BY key ORDER BY ts DESC, tie)"
    )


@st.composite
def queries_of_groups(draw: st.DrawFn, size: int) -> str:
    """Aggregates, values of aggregates, and windows over groups."""
    columns = ["key", *draw(st.lists(st.sampled_from(_GROUPS), max_size=2, unique=True))]
    made = [draw(_aggregates()) for _ in range(size)]
    order = ", ".join(f"{column}{draw(_directions)}" for column in columns)
    over = f"OVER (PARTITION BY key ORDER BY {order})"
    made += ["coalesce(sum(i), 7) + count(*)", f"min({_ZEROS})", "max(d) IS NULL", f"lag({draw(_aggregates())}) {over}"]
    made += [f"row_number() {over}", "sum(count(*)) OVER (PARTITION BY key)"]
    grouped = ", ".join(columns)
    return (
        f"SELECT {grouped}, {_named('g', made)} FROM {{rows}} GROUP BY {grouped} "
        f"HAVING count(*) > 1 OR ({draw(_aggregates())}) IS NOT NULL UNION ALL "
        f"SELECT {grouped}, {', '.join(made)} FROM {{rows}} WHERE ts > 0 GROUP BY {grouped}"
    )


_directions = st.sampled_from(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])


def _named(prefix: str, values: list[str]) -> str:
    return ", ".join(f"{value} AS {prefix}{place}" for place, value in enumerate(values))


@st.composite
def _aggregates(draw: st.DrawFn) -> str:
    function = draw(st.sampled_from(["count", "sum", "min", "max"]))
    kind: Kind = "BIGINT" if function == "sum" else draw(st.sampled_from(ORDERED))
    return draw(st.sampled_from(["count(*)", "sum(i)", *[f"{function}({draw(texts(kind, 1))})"] * 8]))


@st.composite
def _windows(draw: st.DrawFn) -> str:
    """An aggregate in any order and frame, or what needs a total order."""
    partition = ", ".join(["key", *draw(st.lists(st.sampled_from(_GROUPS), max_size=1))])
    by = draw(st.lists(st.sampled_from(ORDERED), max_size=2))
    order = [f"{draw(texts(kind, 1))}{draw(_directions)}" for kind in by]
    total = f"PARTITION BY {partition} ORDER BY {', '.join([*order, f'ts{draw(_directions)}', 'tie'])}"
    way = draw(st.integers(0, 4))
    if way == 0:
        return draw(st.sampled_from([f"row_number() OVER ({total})", "row_number() OVER total"]))
    if way == 1:
        value = draw(texts(draw(st.sampled_from(KINDS)), 1))
        return f"{draw(st.sampled_from(_OF_ANY)).format(value)} OVER ({total})"
    called = draw(_aggregates())
    if way == 2:
        return f"{called} OVER (PARTITION BY {partition}{' ORDER BY ' + ', '.join(order) if order else ''})"
    if way == 3:
        kind, over, unit = "ROWS", total, 1
    else:
        kind, over, unit = "RANGE", f"PARTITION BY {partition} ORDER BY ts", draw(st.sampled_from([_HOUR // 2, 2**59]))
    n, m = draw(st.integers(0, 3)), draw(st.integers(3, 6))
    frame = draw(st.sampled_from(_FRAMES)).format(n=n * unit, m=m * unit)
    return f"{called} OVER ({over} {kind} BETWEEN {frame})"
