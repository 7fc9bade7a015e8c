"""The peer of REBUILD: one DuckDB process makes all batch tables from the facts, each of which it reads once a view.

facts.<type> (Parquet) -> partials, or rows and results with their stretches -> <table>.parquet in a folder.
"""

import sys
from pathlib import Path

import duckdb

from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.engine import sequence_replay, sequences
from spark_jobs.engine.partials import of_facts
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.ledger import store as ledger
from spark_jobs.registry.views import project_views
from spark_jobs.storage import duckdb_reader, tables

D = Dialect.DUCKDB


def main(folder: Path) -> None:
    """Make the tables as the publication in force has them."""
    folder.mkdir()
    store = ledger.open()
    sources = store.sources(store.current_publication())
    con = duckdb_reader.connect({}, sketches=True)
    con.execute("SET threads = 2")
    for view in project_views():
        facts_of = {name: _facts(con, name) for name in view.event_types}
        if isinstance(view, AggregateView):
            _aggregate(con, view, facts_of, folder)
        else:
            horizon = sources[view.id].horizon
            facts_of |= {sequences.side_input_key(name): facts_of[name] for name in view.side_inputs}
            rows_of = {
                name: facts_of[name] for name in facts_of if name in view.row_types or name not in view.event_types
            }
            _sequence(con, view, rows_of, 0 if horizon is None else since_epoch(horizon), folder)


def _facts(con: duckdb.DuckDBPyConnection, event_type: str) -> str:
    name = f"facts_{event_type}"
    con.register(name, duckdb_reader.dataset(tables.facts(event_type)))
    return name


def _aggregate(con: duckdb.DuckDBPyConnection, view: AggregateView, facts_of: dict[str, str], folder: Path) -> None:
    made = finished(con.sql(of_facts(view, facts_of, ())).to_arrow_table(), view.sketches, view.partial_schema)
    con.register("made", made)
    day = f", CAST({quote(view.bucket, D)} AS DATE) AS bucket_day" if view.bucket else ""
    con.execute(f"COPY (SELECT *{day} FROM made) TO '{folder / view.id}.parquet'")


def _sequence(
    con: duckdb.DuckDBPyConnection, view: SequenceView, facts_of: dict[str, str], horizon: int, folder: Path
) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {of_facts(view, facts_of)}")
    rows, results = sequence_replay.replayed(con, view, "fresh")
    con.execute(f"COPY (SELECT * FROM ({rows}) WHERE stretch_end >= {horizon:d}) TO '{folder / view.id}_rows.parquet'")
    con.execute(f"COPY ({results}) TO '{folder / view.id}_results.parquet'")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
