"""Find the records that batch and speed were bound to see differently between two cuts: they prove a cause.

coverage, duplicates, verdicts, replaced days -> facts per cause -> keys, by the view's own expressions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.row_types import COORDINATES
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from spark_jobs.engine.decode.joined import places
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.engine.dedupe import divided
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.quality import recompute
from spark_jobs.quality.recompute import PLACE
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables

NOT_COVERED = "not_covered"
DUPLICATE = "duplicate_outside_window"
NEWER_SCHEMA = "accepted_by_newer_schema"
REVISED = "revised"
CORRECTED = "facts_replaced"

FACTS_AT_ONCE = 500_000
Facts = Mapping[str, pa.Table]


class Causes:
    """The records that batch and speed see differently between two cuts, fetched once for all views."""

    def __init__(self, old_cut: int, new_cut: int, changed: Mapping[str, Sequence[str]]) -> None:
        """`changed`: event type -> days (ISO) whose older facts the batch layer has replaced."""
        self.old_cut, self.new_cut, self.changed = old_cut, new_cut, changed
        self.coverage = coverage.covered(old_cut)
        layers = {"duplicates": tables.DUPLICATES, "partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG}
        con = duckdb_reader.connect(layers)
        self.unmarked = _unmarked(con, old_cut, new_cut)
        self.accepted_later = _accepted_later(con, old_cut, new_cut)
        self.revised = _revised(con, old_cut, new_cut, (AS_LANDED, new_cut))
        self.revised_before = _revised(con, 0, old_cut, (old_cut, new_cut))
        self.rejects_of_speed = _rejects_of_speed(con, old_cut, new_cut)

    def seen_otherwise(self, view: View) -> pa.Table:
        """The places of the records of which the layers were bound to see different facts, or one saw none."""
        facts = [rows for records in (self.unmarked, self.accepted_later, self.revised) for rows in records.values()]
        missing = coverage.holes(self.old_cut, self.new_cut, self.coverage, view.column)
        if missing:
            facts += [rows for of in self.settled_facts(view, pa.array(missing)) for rows in of.values()]
        return pa.concat_tables([pa.schema(COORDINATES).empty_table(), *map(places, facts)])

    def keys(self, cause: str, view: View) -> Iterator[pa.Table]:
        """The view's partials (lsn, and its keys; a sequence: `key`) of every record behind this cause."""
        for facts in self._facts(cause, view):
            passed = compute({**facts, **self.side_inputs(view)}, [view])
            if view.column in passed.partials:
                yield passed.partials[view.column]

    def _facts(self, cause: str, view: View) -> Iterator[Facts]:
        if cause in (DUPLICATE, NEWER_SCHEMA, REVISED):
            records = {DUPLICATE: self.unmarked, NEWER_SCHEMA: self.accepted_later, REVISED: self.revised}[cause]
            if mine := {name: rows for name, rows in records.items() if name in view.event_types}:
                yield mine
        elif cause == NOT_COVERED:
            if missing := coverage.holes(self.old_cut, self.new_cut, self.coverage, view.column):
                yield from self.settled_facts(view, pa.array(missing))
        elif cause == CORRECTED:
            if mine := {name: rows for name, rows in self.revised_before.items() if name in view.event_types}:
                yield mine
            for event_type in view.event_types:
                if days := self.changed.get(event_type):
                    of = ds.field("day").isin(pa.array(days).cast(pa.date32())) & (ds.field("lsn") <= self.old_cut)
                    yield from _facts_where([event_type], of)

    def settled(self, view: View, lsns: pa.ChunkedArray) -> pa.Table:
        """The view's partials of those lsns, made of the facts that count."""
        schema = pa.schema([("lsn", pa.int64()), *view.partial_schema])
        side_inputs = self.side_inputs(view)
        portions = ({**facts, **side_inputs} for facts in self.settled_facts(view, pc.unique(lsns)))
        return pa.concat_tables([schema.empty_table(), *(compute(f, [view]).partials[view.column] for f in portions)])

    def side_inputs(self, view: View) -> Facts:
        """The side inputs of the view's rows, up to the new cut."""
        return {side_input_key(name): self._all_of(name) for name in view.side_inputs}

    def _all_of(self, event_type: str) -> pa.Table:
        names = project_contracts().of(event_type).fact_schema.names
        return duckdb_reader.dataset(tables.facts(event_type)).to_table(names, filter=ds.field("lsn") <= self.new_cut)

    def settled_facts(self, view: View, lsns: pa.Array) -> Iterator[Facts]:
        """The facts of those lsns, as the batch layer settled them."""
        return _facts_where(view.event_types, ds.field("lsn").isin(lsns))


class UnbuiltCauses(Causes):
    """The records that batch will see differently at `head`: the named limits before the next build.

    log (cut, head] + identities of the facts -> duplicates that speed counted, facts that count. They prove causes for
    I3 between publications, as the duplicates table does for agreement at one.
    """

    def __init__(self, cut: int, head: int) -> None:
        self.old_cut, self.new_cut, self.changed = cut, head, {}
        self.coverage = coverage.covered(cut)
        con = recompute.later(head, above=cut)
        con.register("partials", duckdb_reader.dataset(tables.SPEED_PARTIALS))
        con.register("log", duckdb_reader.dataset(tables.MASTER_LOG))
        self.unmarked, self.accepted_later = _unmarked(con, cut, head), {}
        self.revised, self.revised_before = {}, {}
        self._facts_past_cut = {
            event_type: con.sql(f"FROM facts_{event_type}").to_arrow_table()
            for event_type in project_contracts().event_types
        }

    def _all_of(self, event_type: str) -> pa.Table:
        built = super()._all_of(event_type)
        past = self._facts_past_cut[event_type].select(built.schema.names).cast(built.schema)
        return pa.concat_tables([built.filter(pc.less_equal(built["lsn"], self.old_cut)), past])

    def settled_facts(self, view: View, lsns: pa.Array) -> Iterator[Facts]:
        for event_type in view.event_types:
            facts = self._facts_past_cut[event_type]
            if (mine := facts.filter(pc.is_in(facts["lsn"], lsns))).num_rows:
                yield {event_type: mine}


def _unmarked(con: duckdb.DuckDBPyConnection, above: int, upto: int) -> Facts:
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
    return record_outcomes.either_way(decode_logged(records, log_reader.read_schema_history()).facts)


def _named(kind: str) -> str:
    """SELECT of the coordinates in the control rows of a kind."""
    return f"SELECT lsn, control.topic, control.partition, control.\"offset\" FROM partials WHERE view = '{kind}'"


def _rejects_of_speed(con: duckdb.DuckDBPyConnection, above: int, upto: int) -> pa.Table:
    """What views rejected in the speed layer: view (column), place, event_type, field."""
    return con.sql(
        f'SELECT control.view, lsn, control.topic, control.partition, control."offset", control.event_type, '
        f"control.field FROM partials WHERE view = '{row_types.REJECT_ROW}' AND control.view IS NOT NULL "
        f"AND lsn > {above:d} AND lsn <= {upto:d}"
    ).to_arrow_table()


def _accepted_later(con: duckdb.DuckDBPyConnection, above: int, upto: int) -> Facts:
    """What the speed layer rejected in (above, upto] and the batch layer accepts, by schemas that came in between.

    As facts, and with the outcomes that either layer has of them.
    """
    history = log_reader.read_schema_history()
    if not history.within(above, upto):
        return {}
    con.execute(
        f"CREATE TEMP TABLE rejected AS {_named(row_types.REJECT_ROW)} "
        f"AND control.view IS NULL AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    records = _records(con, "rejected", above + 1, upto)
    accepted = record_outcomes.countable(decode_logged(records, history, upto).facts)
    return _two_ways(divided(records, _places(accepted))[1], history, AS_LANDED, upto)


def _revised(con: duckdb.DuckDBPyConnection, above: int, upto: int, cuts: tuple[int, int]) -> Facts:
    """The records of (above, upto] that are read otherwise at the second cut than at the first, by revisions.

    As the facts that they are at either, with their outcomes. `con` has the relations `duplicates` and `log`.
    """
    history = log_reader.read_schema_history()
    said = history.revisions.within(max(cuts[0], above), cuts[1])
    if not said or upto <= above:
        return {}
    con.register("places", pa.Table.from_pylist([one.place._asdict() for one in said], pa.schema(COORDINATES)))
    of_facts = pa.array([one.identity for one in said if one.identity is not None], pa.binary())
    con.register("identities", pa.table({"identity": of_facts}))
    con.register("quarantine", duckdb_reader.dataset(tables.QUARANTINE))
    found = [f"SELECT {PLACE} FROM places", f"SELECT {PLACE} FROM quarantine WHERE reason = '{Reason.RETRACTED}'"]
    stored = ["duplicates"]
    for number, event_type in enumerate(sorted({one.event_type for one in said if one.event_type is not None})):
        con.register(f"stored_{number}", duckdb_reader.dataset(tables.facts(event_type)))
        stored.append(f"stored_{number}")
    found += [f"SELECT {PLACE} FROM {rows} SEMI JOIN identities USING (identity)" for rows in stored]
    con.execute(f"CREATE OR REPLACE TEMP TABLE revised AS {' UNION '.join(found)}")
    return _two_ways(_records(con, "revised", above + 1, upto), history, *cuts)


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


def _facts_where(event_types: Iterable[str], of: ds.Expression) -> Iterator[Facts]:
    """The stored facts of these types that match, in portions."""
    for event_type in event_types:
        contract = project_contracts().of(event_type)
        scanner = duckdb_reader.dataset(tables.facts(event_type)).scanner(
            columns=contract.fact_schema.names, filter=of, batch_size=FACTS_AT_ONCE
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield {event_type: pa.Table.from_batches([batch])}
