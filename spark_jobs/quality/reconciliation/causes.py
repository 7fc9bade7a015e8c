"""Find the records that batch and speed were bound to see differently between two cuts: they prove a cause.

coverage, duplicates, verdicts, replaced days -> facts per cause -> keys, by the view's own expressions.
"""

from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.dedupe import divided
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables

NOT_COVERED = "not_covered"
DUPLICATE = "duplicate_outside_window"
NEWER_SCHEMA = "accepted_by_newer_schema"
CORRECTED = "facts_replaced"

FACTS_AT_ONCE = 500_000
PLACE = [name for name, _ in row_types.COORDINATES]
Facts = Mapping[str, pa.Table]


class Causes:
    """The records that batch and speed see differently between two cuts, fetched once for all views."""

    def __init__(self, old_cut: int, new_cut: int, changed: Mapping[str, Sequence[str]]) -> None:
        """`changed`: event type -> days (ISO) whose older facts the batch layer has replaced."""
        self.old_cut, self.new_cut, self.changed = old_cut, new_cut, changed
        self.coverage = coverage.covered(old_cut)
        self.unmarked = _unmarked(old_cut, new_cut)
        self.accepted_later = _accepted_later(old_cut, new_cut)

    def keys(self, cause: str, view: View) -> Iterator[pa.Table]:
        """The view's partials (lsn, and its keys; a sequence: `key`) of every record behind this cause."""
        for facts in self._facts(cause, view):
            passed = compute({**facts, **self.side_inputs(view)}, [view])
            if view.column in passed.partials:
                yield passed.partials[view.column]

    def _facts(self, cause: str, view: View) -> Iterator[Facts]:
        if cause in (DUPLICATE, NEWER_SCHEMA):
            records = self.unmarked if cause == DUPLICATE else self.accepted_later
            mine = {name: rows for name, rows in records.items() if name in view.event_types}
            if mine:
                yield mine
        elif cause == NOT_COVERED:
            missing = coverage.holes(self.old_cut, self.new_cut, self.coverage, view.column)
            if missing:
                yield from self.settled_facts(view, pa.array(missing))
        elif cause == CORRECTED:
            for event_type in view.event_types:
                if days := self.changed.get(event_type):
                    of = ds.field("day").isin(pa.array(days).cast(pa.date32())) & (ds.field("lsn") <= self.old_cut)
                    yield from _facts_where(view, of, only=event_type)

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
        return _facts_where(view, ds.field("lsn").isin(lsns))


def _unmarked(above: int, upto: int) -> Facts:
    """Duplicates that the batch layer found in (above, upto] and the speed layer had counted, as the facts it saw.

    And their outcomes: the speed layer's, if the record came late, and the batch layer's.
    """
    con = duckdb_reader.connect(
        {"duplicates": tables.DUPLICATES, "partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG}
    )
    place = 'lsn, topic, partition, "offset"'
    con.execute(
        f"CREATE TEMP TABLE counted AS SELECT {place} FROM duplicates WHERE lsn > {above:d} AND lsn <= {upto:d} EXCEPT "
        'SELECT lsn, control.topic, control.partition, control."offset" FROM partials '
        f"WHERE view = '{row_types.DUPLICATE_ROW}' AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    lsns = [row[0] for row in con.execute("SELECT DISTINCT lsn FROM counted ORDER BY lsn").fetchall()]
    if not lsns:
        return {}
    return record_outcomes.either_way(
        decode_logged(_records(con, "counted", lsns[0], lsns[-1]), log_reader.read_schema_history()).facts
    )


def _accepted_later(above: int, upto: int) -> Facts:
    """What the speed layer rejected in (above, upto] and the batch layer accepts, by schemas that came in between.

    As facts, and with the outcomes that either layer has of them.
    """
    history = log_reader.read_schema_history()
    if not history.within(above, upto):
        return {}
    con = duckdb_reader.connect({"partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG})
    con.execute(
        'CREATE TEMP TABLE rejected AS SELECT lsn, control.topic, control.partition, control."offset" FROM partials '
        f"WHERE view = '{row_types.REJECT_ROW}' AND control.view IS NULL AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    records = _records(con, "rejected", above + 1, upto)
    accepted = decode_logged(records, history, upto).facts
    facts = record_outcomes.either_way(record_outcomes.countable(accepted))
    places = pa.concat_tables(
        rows.select(PLACE) for rows in [record_outcomes.OUTCOME_ROW.empty_table(), *facts.values()]
    )
    told = [
        decoded.get(record_outcomes.RECORD_OUTCOME, record_outcomes.OUTCOME_ROW.empty_table())
        for decoded in (decode_logged(records, history).facts, accepted)
    ]
    of_taken = [divided(rows, places)[1] for rows in told]
    return facts | {
        record_outcomes.RECORD_OUTCOME: pa.concat_tables([facts[record_outcomes.RECORD_OUTCOME], *of_taken])
    }


def _records(con: duckdb.DuckDBPyConnection, listed_in: str, first: int, last: int) -> pa.Table:
    """The records whose coordinates are listed in a table of `con`, of [first, last]."""
    names = [field.name for field in row_types.RECORD]
    within = f"lsn BETWEEN {first:d} AND {last:d}"
    records = con.sql(
        f"SELECT {listed(names, Dialect.DUCKDB)} FROM (SELECT * FROM log WHERE kind = 'record' AND {within}) "
        f'SEMI JOIN {listed_in} USING (lsn, topic, partition, "offset")'
    )
    return records.to_arrow_table().cast(row_types.RECORD)


def _facts_where(view: View, of: ds.Expression, only: str | None = None) -> Iterator[Facts]:
    """The stored facts of the view's event types (or of `only` one) that match, in portions."""
    for event_type in view.event_types if only is None else (only,):
        contract = project_contracts().of(event_type)
        scanner = duckdb_reader.dataset(tables.facts(event_type)).scanner(
            columns=contract.fact_schema.names, filter=of, batch_size=FACTS_AT_ONCE
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield {event_type: pa.Table.from_batches([batch])}
