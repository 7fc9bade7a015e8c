"""Find the records that batch and speed were bound to see differently between two cuts: they prove a cause.

coverage, duplicates, verdicts, replaced days -> facts per cause -> keys, by the view's own expressions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.row_types import COORDINATES
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.by_schema import AS_LANDED
from spark_jobs.engine.decode.joined import places
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.quality import recompute
from spark_jobs.quality.reconciliation import evidence
from spark_jobs.quality.reconciliation.evidence import Facts
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables
from spark_jobs.storage.file_portions import in_portions

NOT_COVERED = "not_covered"
DUPLICATE = "duplicate_outside_window"
NEWER_SCHEMA = "accepted_by_newer_schema"
REVISED = "revised"
OUT_OF_QUARANTINE = "out_of_quarantine"
CORRECTED = "facts_replaced"

FACTS_AT_ONCE = 500_000


class Causes:
    """The records that batch and speed see differently between two cuts, fetched once for all views."""

    def __init__(self, old_cut: int, new_cut: int, changed: Mapping[str, Sequence[str]]) -> None:
        """`changed`: event type -> days (ISO) whose older facts the batch layer has replaced."""
        self.old_cut, self.new_cut, self.changed = old_cut, new_cut, changed
        self.coverage = coverage.covered(old_cut)
        layers = {"duplicates": tables.DUPLICATES, "partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG}
        con, self.history = duckdb_reader.connect(layers), log_reader.read_schema_history()
        self.unmarked = evidence.unmarked(con, self.history, old_cut, new_cut)
        self.accepted_later = evidence.accepted_later(con, self.history, old_cut, new_cut)
        self.revised = evidence.revised(con, self.history, (old_cut, new_cut), (AS_LANDED, new_cut))
        self.revised_before = evidence.revised(con, self.history, (0, old_cut), (old_cut, new_cut))
        self.rejects_of_speed = evidence.rejects_of_speed(con, old_cut, new_cut)

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
        records = {DUPLICATE: self.unmarked, NEWER_SCHEMA: self.accepted_later, REVISED: self.revised}
        records[CORRECTED] = self.revised_before
        if mine := {name: rows for name, rows in records.get(cause, {}).items() if name in view.event_types}:
            yield mine
        if cause == NOT_COVERED:
            if missing := coverage.holes(self.old_cut, self.new_cut, self.coverage, view.column):
                yield from self.settled_facts(view, pa.array(missing))
        elif cause == OUT_OF_QUARANTINE:
            for new in self.history.within(self.old_cut, self.new_cut):
                if new.event_type in view.event_types:
                    yield from self._replaced(new.event_type, ds.field("schema_version") == new.version)
        elif cause == CORRECTED:
            for event_type in view.event_types:
                yield from self._replaced(event_type)

    def _replaced(self, event_type: str, which: ds.Expression | None = None) -> Iterator[Facts]:
        """The older facts, or `which` of them, of the days that the batch layer has replaced."""
        if days := self.changed.get(event_type):
            of = ds.field("day").isin(pa.array(days).cast(pa.date32())) & (ds.field("lsn") <= self.old_cut)
            yield from _facts_where([event_type], of if which is None else of & which)

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
        """The facts of those lsns, all between the cuts, as the batch layer settled them.

        The cuts are told as well: a list of lsns rules no file out, and facts of years would be read for each view.
        """
        between = (ds.field("lsn") > self.old_cut) & (ds.field("lsn") <= self.new_cut)
        return _facts_where(view.event_types, between & ds.field("lsn").isin(lsns))


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
        self.history = log_reader.read_schema_history()
        self.unmarked, self.accepted_later = evidence.unmarked(con, self.history, cut, head), {}
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


def _facts_where(event_types: Iterable[str], of: ds.Expression) -> Iterator[Facts]:
    """The stored facts of these types that match, in portions."""
    for event_type in event_types:
        contract = project_contracts().of(event_type)
        stored = duckdb_reader.dataset(tables.facts(event_type))
        for batch in in_portions(stored, FACTS_AT_ONCE, of, contract.fact_schema.names):
            if batch.num_rows:
                yield {event_type: pa.Table.from_batches([batch])}
