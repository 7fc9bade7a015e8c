"""Build a sequence view in one DuckDB: new rows, and what was built -> all rows and all results, with `stretch_end`.

new rows + stored rows that they reach -> live -> resolved -> rows and results, beside those that are kept.
It is the serving rule (docs/sequences.md, rule 11) with the new rows: what they do not touch stays. Pure.
"""

from collections.abc import Sequence

import duckdb

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import Dialect

D = Dialect.DUCKDB


def deep_keys(recent: str, horizon: int) -> str:
    """Keys with a row before the horizon: the stored rows do not reach back far enough to replay them."""
    return f"SELECT key FROM {recent} GROUP BY key HAVING min(ts) < {horizon:d}"


def replayed(
    con: duckdb.DuckDBPyConnection,
    view: SequenceView,
    new: str,
    built: Sequence[str] = (),
    deep: str | None = None,
) -> tuple[str, str]:
    """SELECTs of all rows (lsn and `view.row_kinds`) and of all results, each with its `stretch_end`.

    Relations of `con`: `new` rows; those of the rows and results that were `built`, none for a build from all rows;
    `deep` keys, of which `new` has all rows there are. The tables `resolved` and `ends` are made in `con`, and `live`
    where something was built; else all new rows are.
    """
    row_columns, result_columns = ["lsn", *view.row_kinds], list(view.result_kinds)
    live, kept = new, ["", ""]
    if built:
        rows, results = built
        rows = f"(SELECT r.* FROM {rows} r ANTI JOIN {deep} k ON r.key = k.key)" if deep else rows
        con.execute(f"CREATE OR REPLACE TEMP TABLE live AS {sequences.live(row_columns, D, rows, new)}")
        live = "live"
        stored = (([*row_columns, "stretch_end"], rows), ([*result_columns, "stretch_end"], results))
        kept = [f"{sequences.kept(columns, D, relation, new)} UNION ALL " for columns, relation in stored]
    con.execute(f"CREATE OR REPLACE TEMP TABLE resolved AS {sequences.resolve(view, D, live)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE ends AS {sequences.stretches(view, live, 'resolved')}")
    rows, results = sequences.stretched(view, live, "resolved", "ends")
    return kept[0] + rows, kept[1] + results
