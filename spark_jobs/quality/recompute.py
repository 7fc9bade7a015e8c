"""Recompute facts and views from the log alone, in DuckDB, without a JVM.

master.log (lsn <= cut) -> decode -> first of each identity -> partials and results. What the batch layer stored must
equal it (I7, I8). It shares decode and the views with the batch layer, but neither engine nor SQL dialect.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract, Contracts
from spark_jobs.contracts.schema_history import EVERY_SCHEMA, SchemaHistory
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import record_outcomes, sequences, serving_plan
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from spark_jobs.engine.partials import of_facts
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.storage import duckdb_reader
from spark_jobs.storage.log_reader import portions

RECORDS_AT_ONCE = 200_000
DUCKDB = Dialect.DUCKDB
_ORDER = 'lsn, topic, partition, "offset"'


def records(cut: int, above: int = 0) -> Iterator[pa.Table]:
    """The landed records of (above, cut], in portions, with the columns of RECORD."""
    return portions((ds.field("lsn") <= cut) & (ds.field("lsn") > above), RECORDS_AT_ONCE)


def facts(
    con: duckdb.DuckDBPyConnection,
    portions: Iterable[pa.Table],
    history: SchemaHistory = EVERY_SCHEMA,
    cut: int = AS_LANDED,
) -> None:
    """Make the tables `facts_<type>`, `rejects`, `duplicates` in `con`, as the batch layer would have at `cut`."""
    known = project_contracts()
    con.register("nothing", row_types.REJECT.empty_table())
    con.execute("CREATE OR REPLACE TEMP TABLE rejects AS FROM nothing")
    for contract in known:
        con.register("nothing", contract.fact_schema.empty_table())
        con.execute(f"CREATE OR REPLACE TEMP TABLE {all_of(contract)} AS FROM nothing")
    for portion in portions:
        decoded = decode_logged(portion, history, cut)
        for event_type, rows in [*decoded.facts.items(), (None, decoded.rejects)]:
            con.register("portion", rows)
            into = "rejects" if event_type is None else all_of(known.of(event_type))
            con.execute(f"INSERT INTO {into} BY NAME SELECT * FROM portion")
    _split(con, known)


def all_of(contract: Contract) -> str:
    """Every decoded row of a type, duplicates included."""
    return f"decoded_{contract.event_type}"


def _split(con: duckdb.DuckDBPyConnection, known: Contracts) -> None:
    """The first of each identity is the fact; the others are duplicates."""
    columns = f"{_ORDER}, event_type, identity, timestamp"
    con.execute("CREATE OR REPLACE TEMP TABLE losers AS " + " UNION ALL ".join(
        f"SELECT {columns} FROM {all_of(contract)} WHERE identity IN (SELECT identity FROM {all_of(contract)} "
        f"GROUP BY identity HAVING count(*) > 1) "
        f"QUALIFY row_number() OVER (PARTITION BY identity ORDER BY {_ORDER}) > 1"
        for contract in known if not contract.is_outcome
    ))  # fmt: skip
    con.execute("CREATE OR REPLACE TEMP TABLE duplicates AS FROM losers")
    for contract in known:
        con.execute(
            f"CREATE OR REPLACE TEMP VIEW facts_{contract.event_type} AS {settled(con, contract, 'duplicates')}"
        )


def settled(con: duckdb.DuckDBPyConnection, contract: Contract, losers: str) -> str:
    """SELECT of the rows of a type that count: all but the duplicates `losers`, which count as their outcomes."""
    kept = f'SELECT * FROM {all_of(contract)} ANTI JOIN {losers} USING (lsn, topic, partition, "offset")'
    if not contract.is_outcome:
        return kept
    con.register(f"noted_{losers}", record_outcomes.of_duplicates(con.sql(f"FROM {losers}").to_arrow_table()))
    return f"{kept} UNION ALL BY NAME FROM noted_{losers}"


@dataclass(frozen=True)
class Recomputed:
    """All of `facts_<type>` in `con` as the parts of an answer: nothing is built, everything is added."""

    con: duckdb.DuckDBPyConnection
    in_force: Sequence[View]
    now: datetime | None = None
    dialect: Dialect = DUCKDB

    def built(self, view: View) -> Sequence[str]:
        return ()

    def added(self, view: View) -> str:
        if isinstance(view, AggregateView):
            return f"FROM {partials(self.con, view)}"
        assert isinstance(view, SequenceView)
        return sequences.rows(view, DUCKDB, {event_type: f"facts_{event_type}" for event_type in view.event_types})


def answer(con: duckdb.DuckDBPyConnection, view: View) -> str:
    """SELECT of the view's rows over all of `facts_<type>`; for an aggregate as `LocalAnswers.own` gives them."""
    return serving_plan.own_answer(view, Recomputed(con, [view]))


def partials(con: duckdb.DuckDBPyConnection, view: AggregateView) -> str:
    """A table in `con` with one row per key and the view's partial columns."""
    facts_of = {event_type: f"facts_{event_type}" for event_type in view.event_types}
    made = con.sql(of_facts(view, DUCKDB, facts_of, ())).to_arrow_table()
    con.register("made", finished(made, view.sketches, view.partial_schema))
    con.execute(f"CREATE OR REPLACE TEMP TABLE rebuilt_{view.id} AS FROM made")
    return f"rebuilt_{view.id}"


def stored(view: SequenceView) -> tuple[str, str]:
    """SELECTs of a sequence's rows (with lsn) and results, both with `stretch_end`, over `facts_<type>`."""
    facts_of = {event_type: f"facts_{event_type}" for event_type in view.event_types}
    rows = f"({sequences.rows(view, DUCKDB, facts_of)})"
    return sequences.stretches(view, DUCKDB, rows, f"({sequences.resolve(view, DUCKDB, rows)})")


def connect() -> duckdb.DuckDBPyConnection:
    """A connection in which to recompute."""
    return duckdb_reader.connect({}, sketches=True)
