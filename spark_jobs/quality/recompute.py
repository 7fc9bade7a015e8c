"""Recompute facts and views from the log alone, in DuckDB, without a JVM.

master.log (lsn <= cut) -> decode -> first of each identity -> partials and results. What the batch layer stored must
equal it (I7, I8). It shares decode, the views and, for sequences, the engine that resolves them; aggregates and
duplicates are computed by another engine than in the batch layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import partials as partials_of
from spark_jobs.engine import record_outcomes, sequences, serving_plan
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from spark_jobs.engine.partials import of_facts
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.storage import duckdb_reader, log_reader, tables

RECORDS_AT_ONCE = 200_000
DUCKDB = Dialect.DUCKDB
PLACE = listed(dict(row_types.COORDINATES), DUCKDB)


def facts(
    upto: int, above: int = 0, cut: int = AS_LANDED, where: ds.Expression | None = None
) -> duckdb.DuckDBPyConnection:
    """A connection with `facts_<type>`, `rejects`, `duplicates` of the log's (above, upto], as batch has at `cut`.

    where: of the records only these.
    """
    portions = log_reader.portions(ds.scalar(True) if where is None else where, [(above + 1, upto)], RECORDS_AT_ONCE)
    return decoded(portions, log_reader.read_schema_history(), cut)


def decoded(portions: Iterable[pa.Table], history: SchemaHistory, cut: int = AS_LANDED) -> duckdb.DuckDBPyConnection:
    """The same of any records (row_types.RECORD)."""
    con = duckdb_reader.connect({}, sketches=True)
    empty = {"rejects": row_types.REJECT} | {all_of(c.event_type): c.fact_schema for c in project_contracts()}
    for table, schema in empty.items():
        con.register("nothing", schema.empty_table())
        con.execute(f"CREATE TEMP TABLE {table} AS FROM nothing")
    for portion in portions:
        told = decode_logged(portion, history, cut)
        made = {"rejects": told.rejects} | {all_of(name): rows for name, rows in told.facts.items()}
        for table, rows in made.items():
            con.register("portion", rows)
            con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM portion")
    con.execute("CREATE TEMP TABLE duplicates AS " + " UNION ALL ".join(
        f"SELECT {PLACE}, event_type, identity, timestamp FROM {rows} WHERE identity IN "
        f"(SELECT identity FROM {rows} GROUP BY identity HAVING count(*) > 1) "
        f"QUALIFY row_number() OVER (PARTITION BY identity ORDER BY {PLACE}) > 1"
        for rows in map(all_of, _of_records())
    ))  # fmt: skip
    settle(con)
    return con


def later(upto: int, above: int, cut: int = AS_LANDED, where: ds.Expression | None = None) -> duckdb.DuckDBPyConnection:
    """As `facts`; what repeats a stored fact at or below `above` is a duplicate too.

    where: of the records only these; what repeats an earlier one among the others is known by its stored fact.
    """
    con = facts(upto, above, cut, where)
    for event_type in _of_records():
        if known := _stored(con, event_type, above if where is None else upto):
            con.execute(
                f"INSERT INTO duplicates SELECT {PLACE}, event_type, identity, timestamp "
                f"FROM {all_of(event_type)} d ANTI JOIN duplicates USING ({PLACE}) SEMI JOIN "
                f"(SELECT s.* FROM {known} s SEMI JOIN {all_of(event_type)} USING (identity)) k "
                f"ON k.identity = d.identity AND {_place('k')} < {_place('d')}"
            )
    settle(con)
    return con


def upon(cut: int, head: int) -> duckdb.DuckDBPyConnection:
    """`facts_<type>` up to the head: the stored ones up to the cut, and what the log gives past it."""
    con = later(head, above=cut, cut=cut)
    for contract in project_contracts():
        name, columns = f"facts_{contract.event_type}", listed(contract.fact_schema.names, DUCKDB)
        con.execute(f"CREATE TEMP TABLE new_{name} AS SELECT {columns} FROM {name}")
        known = _stored(con, contract.event_type, cut)
        both = f"SELECT {columns} FROM {known} UNION ALL " if known else ""
        con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {both}FROM new_{name}")
    return con


def _place(relation: str) -> str:
    """Where its records are in the log, as a value of SQL that orders them."""
    return f"({', '.join(f'{relation}.{quote(name, DUCKDB)}' for name, _ in row_types.COORDINATES)})"


def _stored(con: duckdb.DuckDBPyConnection, event_type: str, upto: int) -> str | None:
    """The relation of the stored facts of a type up to an lsn; None where there is no table."""
    if not upto or not duckdb_reader.exists(tables.facts(event_type)):
        return None
    con.register(f"stored_{event_type}", duckdb_reader.dataset(tables.facts(event_type)))
    return f"(SELECT * FROM stored_{event_type} WHERE lsn <= {upto:d})"


def _of_records() -> Iterable[str]:
    """The event types that are sent."""
    return (contract.event_type for contract in project_contracts() if not contract.is_outcome)


def all_of(event_type: str) -> str:
    """Every decoded row of a type, duplicates included."""
    return f"decoded_{event_type}"


def settle(con: duckdb.DuckDBPyConnection) -> None:
    """Make `facts_<type>`, the rows that count: all but those in `duplicates`, which count as their outcomes."""
    con.register("outcomes", record_outcomes.of_duplicates(con.sql("FROM duplicates").to_arrow_table()))
    for contract in project_contracts():
        counted = f"SELECT * FROM {all_of(contract.event_type)} ANTI JOIN duplicates USING ({PLACE})"
        counted += " UNION ALL BY NAME FROM outcomes" if contract.is_outcome else ""
        con.execute(f"CREATE OR REPLACE TEMP VIEW facts_{contract.event_type} AS {counted}")


@dataclass(frozen=True)
class Recomputed:
    """All of `facts_<type>` in `con` as the parts of an answer: nothing is built, everything is added.

    only: view id -> an SQL condition on its stored keys; of other views all keys are there.
    """

    con: duckdb.DuckDBPyConnection
    in_force: Sequence[View]
    now: datetime | None = None
    only: Mapping[str, str] = field(default_factory=dict)
    dialect: Dialect = DUCKDB

    def built(self, view: View) -> Sequence[str]:
        return ()

    def added(self, view: View) -> str:
        where = self.only.get(view.id, "true")
        if isinstance(view, AggregateView):
            return f"FROM {partials(self.con, view, where)}"
        return rows_of(view, where)


def answer(con: duckdb.DuckDBPyConnection, view: View, where: str = "true") -> str:
    """SELECT of the view's rows over all of `facts_<type>` (of the keys `where`), as `LocalAnswers.own` gives them."""
    return serving_plan.own_answer(view, Recomputed(con, [view], only={view.id: where}))


def partials(con: duckdb.DuckDBPyConnection, view: AggregateView, where: str = "true") -> str:
    """A relation of `con` with one row per key (of those `where`) and the view's partial columns."""
    made = con.sql(f"SELECT * FROM ({of_facts(view, facts_of(view), ())}) WHERE {where}").to_arrow_table()
    con.register(f"recomputed_{view.id}", finished(made, view.sketches, view.partial_schema))
    return f"recomputed_{view.id}"


def rejects(view: View) -> str | None:
    """SELECT of what the view rejects of `facts_<type>`; None if it can reject nothing."""
    return partials_of.rejects(view, facts_of(view))


def rows_of(view: SequenceView, where: str = "true") -> str:
    """SELECT of a sequence's rows (of the keys `where`), with lsn, over `facts_<type>`."""
    return f"SELECT * FROM ({sequences.rows(view, facts_of(view))}) WHERE {where}"


def stored(con: duckdb.DuckDBPyConnection, view: SequenceView, where: str = "true") -> tuple[str, str]:
    """SELECTs of a sequence's rows (with lsn) and results, both with `stretch_end`, over `facts_<type>` of `con`."""
    rows, results, ends = (f"recomputed_{what}" for what in ("rows", "results", "ends"))
    con.execute(f"CREATE OR REPLACE TEMP TABLE {rows} AS {rows_of(view, where)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE {results} AS {sequences.resolve(view, DUCKDB, rows)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE {ends} AS {sequences.stretches(view, rows, results)}")
    return sequences.stretched(view, rows, results, ends)


def facts_of(view: View) -> dict[str, str]:
    """Event type -> the relation of its facts."""
    return {event_type: f"facts_{event_type}" for event_type in view.event_types}
