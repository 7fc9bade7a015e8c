"""Side inputs of rows: the facts of other event types that landed before them, such as promoted models.

facts.<type> up to the published cut, master.log after it -> decode, first of each identity -> kept in memory, as they
are few. The facts of a micro-batch count only for later ones, so that its records need no order.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import EVERY_SCHEMA, SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.dedupe import first_of_each
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.storage import duckdb_reader, log_reader, tables


class SideInputs:
    """`built`: the cut up to which the batch layer has decoded. `history`: the schemas that judge records."""

    def __init__(self, views: Sequence[View], built: int, history: SchemaHistory = EVERY_SCHEMA) -> None:
        types = dict.fromkeys(name for view in views for name in view.side_inputs)
        self._known = {name: _built(name, built) for name in types}
        self._upto = built
        self.history = history

    def before(self, lsn: int) -> dict[str, pa.Table]:
        """`sequences.side_input_key` -> the facts of all lower lsns; those not known yet are read from the log."""
        if not self._known:
            return {}
        if self._upto < lsn - 1:
            topics = sorted({project_contracts().of(name).topic for name in self._known})
            records = log_reader.records(ds.field("topic").isin(topics), [(self._upto + 1, lsn - 1)])
            self._take(decode_logged(records, self.history).facts)
            self._upto = lsn - 1
        return {side_input_key(name): rows.filter(pc.less(rows["lsn"], lsn)) for name, rows in self._known.items()}

    def add(self, lsn: int, facts: Mapping[str, pa.Table]) -> None:
        """Add the facts of the next micro-batch; those of a later one are left to be read from the log."""
        if lsn == self._upto + 1:
            self._take(facts)
            self._upto = lsn

    def _take(self, facts: Mapping[str, pa.Table]) -> None:
        for name in self._known.keys() & facts.keys():
            self._known[name], _ = first_of_each(pa.concat_tables([self._known[name], facts[name]]))


def _built(event_type: str, cut: int) -> pa.Table:
    schema = project_contracts().of(event_type).fact_schema
    if not cut or not duckdb_reader.exists(tables.facts(event_type)):  # no run has decoded one yet
        return schema.empty_table()
    facts = duckdb_reader.dataset(tables.facts(event_type))
    return facts.to_table(schema.names, filter=ds.field("lsn") <= cut).cast(schema)
