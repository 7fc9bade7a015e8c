"""Build a sequence view: queries for the engine that has the rows, and the pass over the rows to resolve. Pure.

rows -> named relations, the last of them `live` -> resolved (DuckDB) -> all rows and all results, with `stretch_end`.
`replayed` is the serving rule (docs/sequences.md, rule 11) with the new rows: what they do not touch is kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import sequences
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, listed

Named = Callable[[str], str]
"""A relation of this build -> its name in the engine."""


@dataclass(frozen=True)
class Queries:
    """`relations`: (name, query), each over earlier ones; the last is `live`, whose rows are to be resolved.

    `rows` and `results` read them, and what `resolved` makes of `live`, as `made_rows` and `made_results`.
    """

    relations: tuple[tuple[str, str], ...]
    rows: str
    results: str


def from_scratch(view: SequenceView, d: Dialect, named: Named, everything: str) -> Queries:
    """All rows and results of the query `everything` (lsn and the stored row columns)."""
    (_, rows), (_, results) = _made(view, d, named)
    return Queries(((named("live"), everything),), rows, results)


def _made(view: SequenceView, d: Dialect, named: Named) -> Iterator[tuple[list[str], str]]:
    """For rows and for results: the stored columns, and the SELECT of what `resolved` made of `live`."""
    for what, columns in {"made_rows": ["lsn", *view.row_kinds], "made_results": [*view.result_kinds]}.items():
        stored = [*columns, "stretch_end"]
        yield stored, f"SELECT {listed(stored, d)} FROM {named(what)}"


def resolved(view: SequenceView, live: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Resolve all `live` rows of some keys (lsn and `view.row_kinds`): rows and results, each with its `stretch_end`.

    One pass of one DuckDB thread; a sort of a million rows takes it a second, and Spark, just started, ten.
    """
    with duckdb_session.connect() as con:
        con.register("live", live)
        con.execute(f"CREATE TABLE results AS {sequences.resolve(view, Dialect.DUCKDB, 'live')}")
        made = sequences.stretches(view, Dialect.DUCKDB, "live", "results")
        rows, results = (con.sql(query).to_arrow_table() for query in made)
        return rows, results


def deep_keys(recent: str, horizon: int) -> str:
    """Keys with a row before the horizon: the stored rows do not reach back far enough to replay them."""
    return f"SELECT key FROM {recent} GROUP BY key HAVING min(ts) < {horizon:d}"


def replayed(
    view: SequenceView, d: Dialect, named: Named, recent: str, built: Sequence[str], deep: tuple[str, str] | None = None
) -> Queries:
    """What was `built` (the relations of rows and of results), with the rows of the relation `recent` added.

    deep: relation of the deep keys, and the query of all rows, from which those keys are replayed as a whole.
    """
    new, added, rows = named("new"), f"SELECT * FROM {recent}", built[0]
    if deep:
        keys, everything = deep
        others = f"SELECT n.* FROM {recent} n ANTI JOIN {keys} k ON n.key = k.key"
        added = f"{others} UNION ALL SELECT a.* FROM ({everything}) a SEMI JOIN {keys} k ON a.key = k.key"
        rows = f"(SELECT r.* FROM {rows} r ANTI JOIN {keys} k ON r.key = k.key)"
    live = sequences.live(["lsn", *view.row_kinds], d, rows, new)
    both = (
        f"{sequences.kept(columns, d, stored, new)} UNION ALL {made}"
        for stored, (columns, made) in zip(built, _made(view, d, named), strict=True)
    )
    return Queries(((new, added), (named("live"), live)), *both)
