"""Records that the layers were bound to see differently: repeated ones, and those that were read otherwise later.

log, duplicates, partials, quarantine; schemas and revisions -> the records -> the facts that either layer made of them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.revisions import Revisions
from spark_jobs.contracts.row_types import COORDINATES
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from spark_jobs.engine.decode.joined import places
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.engine.dedupe import divided
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.quality.recompute import PLACE
from spark_jobs.storage import duckdb_reader, log_reader, tables
from spark_jobs.storage.lsn_ranges import Range

Facts = Mapping[str, pa.Table]


def unmarked(con: duckdb.DuckDBPyConnection, history: SchemaHistory, above: int, upto: int) -> Facts:
    """The `duplicates` of (above, upto] that the speed layer had counted, as the facts it saw.

    And their outcomes: the speed layer's, if the record came late, and the batch layer's. `con` has the relations
    `duplicates`, `partials` (the speed layer's) and `log`.
    """
    within = f"lsn > {above:d} AND lsn <= {upto:d}"
    con.execute(
        f"CREATE TEMP TABLE counted AS SELECT {PLACE} FROM duplicates WHERE {within} "
        f"EXCEPT {_named(row_types.DUPLICATE_ROW)} AND {within}"
    )
    [(first, last)] = con.execute("SELECT min(lsn), max(lsn) FROM counted").fetchall()
    if first is None:
        return {}
    records = _records(con, "counted", first, last)
    return record_outcomes.either_way(decode_logged(records, history).facts)


def _named(kind: str) -> str:
    """SELECT of the coordinates in the control rows of a kind."""
    return f"SELECT lsn, control.topic, control.partition, control.\"offset\" FROM partials WHERE view = '{kind}'"


def rejects_of_speed(con: duckdb.DuckDBPyConnection, above: int, upto: int) -> pa.Table:
    """What views rejected in the speed layer: view (column), place, event_type, field."""
    return con.sql(
        f'SELECT control.view, lsn, control.topic, control.partition, control."offset", control.event_type, '
        f"control.field FROM partials WHERE view = '{row_types.REJECT_ROW}' AND control.view IS NOT NULL "
        f"AND lsn > {above:d} AND lsn <= {upto:d}"
    ).to_arrow_table()


def accepted_later(con: duckdb.DuckDBPyConnection, history: SchemaHistory, above: int, upto: int) -> Facts:
    """What the speed layer rejected in (above, upto] and the batch layer accepts, by schemas that came in between.

    As facts, and with the outcomes that either layer has of them.
    """
    if not history.within(above, upto):
        return {}
    con.execute(
        f"CREATE TEMP TABLE rejected AS {_named(row_types.REJECT_ROW)} "
        f"AND control.view IS NULL AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    records = _records(con, "rejected", above + 1, upto)
    accepted = record_outcomes.countable(decode_logged(records, history, upto).facts)
    return _two_ways(divided(records, _places(accepted))[1], history, AS_LANDED, upto)


def revised(con: duckdb.DuckDBPyConnection, history: SchemaHistory, lsns: Range, cuts: tuple[int, int]) -> Facts:
    """The records of `lsns` (above, upto] that revisions between the cuts have read otherwise.

    As the facts that they are at either cut, with their outcomes. `con` has the relations `duplicates` and `log`.
    """
    (above, upto), said = lsns, history.revisions.within(max(cuts[0], lsns[0]), cuts[1])
    if not said or upto <= above:
        return {}
    identities = pa.array([one.identity for one in said if one.identity is not None], pa.binary())
    con.register("identities", pa.table({"identity": identities}))
    con.register("named", pa.Table.from_pylist([one.place._asdict() for one in said], pa.schema(COORDINATES)))
    con.register("taken_back", _taken_back(history, identities, lsns, cuts[1]))
    found = [f"SELECT {PLACE} FROM named", f"SELECT {PLACE} FROM taken_back"]
    stored = {"duplicates": tables.DUPLICATES}
    stored |= {f"stored_{one.event_type}": tables.facts(one.event_type) for one in said if one.event_type is not None}
    for relation, table in stored.items():
        con.register(relation, duckdb_reader.dataset(table))
        found.append(f"SELECT {PLACE} FROM {quote(relation, Dialect.DUCKDB)} SEMI JOIN identities USING (identity)")
    con.execute(f"CREATE OR REPLACE TEMP TABLE revised AS {' UNION '.join(found)}")
    return _two_ways(_records(con, "revised", above + 1, upto), history, *cuts)


def _taken_back(history: SchemaHistory, identities: pa.Array, lsns: Range, cut: int) -> pa.Table:
    """The places of records that would be facts of these identities, had nothing been said of them."""
    within = (ds.field("lsn") > lsns[0]) & (ds.field("lsn") <= lsns[1])
    unsaid, found = replace(history, revisions=Revisions()), [pa.schema(COORDINATES).empty_table()]
    for records in log_reader.quarantined(within & (ds.field("reason") == Reason.RETRACTED)):
        for rows in record_outcomes.countable(decode_logged(records, unsaid, cut).facts).values():
            found.append(places(rows.filter(pc.is_in(rows["identity"].cast(pa.binary()), identities))))
    return pa.concat_tables(found)


def _two_ways(records: pa.Table, history: SchemaHistory, before: int, after: int) -> Facts:
    """The facts that records are at two cuts, as one of them, and the outcomes of either."""
    both = defaultdict[str, list[pa.Table]](list)
    for cut in (before, after):
        for name, rows in decode_logged(records, history, cut).facts.items():
            both[name].append(rows)
    return record_outcomes.either_way({name: pa.concat_tables(rows) for name, rows in both.items()})


def _places(facts: Facts) -> pa.Table:
    return pa.concat_tables([pa.schema(COORDINATES).empty_table(), *map(places, facts.values())])


def _records(con: duckdb.DuckDBPyConnection, places: str, first: int, last: int) -> pa.Table:
    """The records of [first, last] whose coordinates are in the table `places` of `con`."""
    records = con.sql(
        f"SELECT {listed(row_types.RECORD.names, Dialect.DUCKDB)} FROM (SELECT * FROM log "
        f"WHERE kind = 'record' AND lsn BETWEEN {first:d} AND {last:d}) SEMI JOIN {places} USING ({PLACE})"
    )
    return records.to_arrow_table().cast(row_types.RECORD)
