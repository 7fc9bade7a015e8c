"""Which records batch and speed were bound to see differently between two cuts: the evidence behind a cause.

coverage, duplicates, verdicts, replaced days -> facts per cause -> keys, by the view's own expressions.
"""

from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs import activation, contracts, notes, tables, warehouse
from spark_jobs.batch import coverage
from spark_jobs.decode import decode_landed
from spark_jobs.dedupe import divided
from spark_jobs.dialect import Dialect, listed
from spark_jobs.partials import compute
from spark_jobs.sequences import given_key
from spark_jobs.view import SequenceView, View

NOT_COVERED = "not_covered"
DUPLICATE = "duplicate_outside_window"
TAKEN_BACK = "accepted_by_newer_schema"
CORRECTED = "facts_replaced"

FACTS_AT_ONCE = 500_000
PLACE = [name for name, _ in tables.COORDINATES]
Facts = Mapping[str, pa.Table]


class Evidence:
    """The records that batch and speed see differently between two cuts, fetched once for all views."""

    def __init__(self, old_cut: int, new_cut: int, changed: Mapping[str, Sequence[str]]) -> None:
        """`changed`: event type -> days (ISO) whose older facts the batch layer has replaced."""
        self.old_cut, self.new_cut, self.changed = old_cut, new_cut, changed
        self.coverage = coverage.covered(old_cut)
        self.unmarked = _unmarked(old_cut, new_cut)
        self.taken_back = _taken_back(old_cut, new_cut)

    def keys(self, cause: str, view: View) -> Iterator[pa.Table]:
        """The view's partials (lsn, and its keys; a sequence: `key`) of every record behind this cause."""
        for facts in self._facts(cause, view):
            found = compute({**facts, **self.given(view)}, [view])
            if view.column in found.partials:
                yield found.partials[view.column]

    def _facts(self, cause: str, view: View) -> Iterator[Facts]:
        if cause in (DUPLICATE, TAKEN_BACK):
            found = self.unmarked if cause == DUPLICATE else self.taken_back
            mine = {name: rows for name, rows in found.items() if name in view.event_types}
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
        given = self.given(view)
        found = ({**facts, **given} for facts in self.settled_facts(view, pc.unique(lsns)))
        return pa.concat_tables([schema.empty_table(), *(compute(one, [view]).partials[view.column] for one in found)])

    def given(self, view: View) -> Facts:
        """What the view's rows are given, up to the new cut."""
        if not isinstance(view, SequenceView):
            return {}
        return {given_key(name): self._all_of(name) for name in view.given}

    def _all_of(self, event_type: str) -> pa.Table:
        names = contracts.load().of(event_type).fact_schema.names
        return warehouse.dataset(tables.facts(event_type)).to_table(names, filter=ds.field("lsn") <= self.new_cut)

    def settled_facts(self, view: View, lsns: pa.Array) -> Iterator[Facts]:
        """The facts of those lsns, as the batch layer settled them."""
        return _facts_where(view, ds.field("lsn").isin(lsns))


def _unmarked(above: int, upto: int) -> Facts:
    """Duplicates that the batch layer found in (above, upto] and the speed layer had counted, as the facts it saw.

    And as notes: the speed layer's, had the record come late, and the batch layer's.
    """
    con = warehouse.connect(
        {"duplicates": tables.DUPLICATES, "partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG}
    )
    place = 'lsn, topic, partition, "offset"'
    con.execute(
        f"CREATE TEMP TABLE counted AS SELECT {place} FROM duplicates WHERE lsn > {above:d} AND lsn <= {upto:d} EXCEPT "
        'SELECT lsn, control.topic, control.partition, control."offset" FROM partials '
        f"WHERE view = '{tables.DUPLICATE_ROW}' AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    lsns = [row[0] for row in con.execute("SELECT DISTINCT lsn FROM counted ORDER BY lsn").fetchall()]
    if not lsns:
        return {}
    return notes.either_way(decode_landed(_records(con, "counted", lsns[0], lsns[-1]), activation.of_log()).facts)


def _taken_back(above: int, upto: int) -> Facts:
    """What the speed layer rejected in (above, upto] and the batch layer accepts, by schemas that came in between.

    As facts, and as the notes that either layer has of them.
    """
    activations = activation.of_log()
    if not activations.within(above, upto):
        return {}
    con = warehouse.connect({"partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG})
    con.execute(
        'CREATE TEMP TABLE rejected AS SELECT lsn, control.topic, control.partition, control."offset" FROM partials '
        f"WHERE view = '{tables.REJECT_ROW}' AND control.view IS NULL AND lsn > {above:d} AND lsn <= {upto:d}"
    )
    records = _records(con, "rejected", above + 1, upto)
    accepted = decode_landed(records, activations, upto).facts
    facts = notes.either_way(notes.countable(accepted))
    places = pa.concat_tables(rows.select(PLACE) for rows in [notes.NOTE.empty_table(), *facts.values()])
    told = [
        found.get(notes.NOTED, notes.NOTE.empty_table())
        for found in (decode_landed(records, activations).facts, accepted)
    ]
    of_taken = [divided(rows, places)[1] for rows in told]
    return facts | {notes.NOTED: pa.concat_tables([facts[notes.NOTED], *of_taken])}


def _records(con: duckdb.DuckDBPyConnection, listed_in: str, first: int, last: int) -> pa.Table:
    """The records whose coordinates are listed in a table of `con`, of [first, last]."""
    names = [field.name for field in tables.RECORD]
    within = f"lsn BETWEEN {first:d} AND {last:d}"
    found = con.sql(
        f"SELECT {listed(names, Dialect.DUCKDB)} FROM (SELECT * FROM log WHERE kind = 'record' AND {within}) "
        f'SEMI JOIN {listed_in} USING (lsn, topic, partition, "offset")'
    )
    return found.to_arrow_table().cast(tables.RECORD)


def _facts_where(view: View, of: ds.Expression, only: str | None = None) -> Iterator[Facts]:
    """The stored facts of the view's event types (or of `only` one) that match, in portions."""
    for event_type in view.event_types if only is None else (only,):
        contract = contracts.load().of(event_type)
        scanner = warehouse.dataset(tables.facts(event_type)).scanner(
            columns=contract.fact_schema.names, filter=of, batch_size=FACTS_AT_ONCE
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield {event_type: pa.Table.from_batches([batch])}
