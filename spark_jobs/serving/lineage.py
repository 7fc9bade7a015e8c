"""The records behind a row: the place of each in the log, found by the view's own key expressions, and its bytes.

facts (lsn <= cut) | master.log decoded (lsn > cut, only the lsns with speed rows) -> Origin -> the record itself.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.revisions import Place
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import aggregates, record_outcomes, sequences
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.partials import of_facts
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import duckdb_reader, log_reader, tables
from spark_jobs.storage.lsn_ranges import joined
from spark_jobs.storage.side_inputs import SideInputs

D = Dialect.DUCKDB
PLACE = 'lsn, topic, partition, "offset"'


class Origin(NamedTuple):
    """The place of a record, and the layer through which it counts in the row."""

    lsn: int
    topic: str
    partition: int
    offset: int
    layer: str


def origins(merged: LocalAnswers, view: View, where: str, lsns: Sequence[int]) -> list[Origin]:
    """Every record that counts in the rows that match `where` (stored keys); `lsns`: where they have speed rows."""
    source = merged.sources[view.id]
    counted = []
    if source.batch_version is not None:
        facts_of = {
            event_type: f"(SELECT * FROM {merged.relation(tables.facts(event_type))} WHERE lsn <= {source.cut:d})"
            for event_type in view.event_types
        }
        counted += _matching(merged, view, facts_of, where, "batch")
    if isinstance(view, SequenceView):
        cases = [
            f"WHEN {test} THEN '{why}'" for why, test in sequences.deferred(D, source.horizon, source.hot_keys).items()
        ]
        layer = f"CASE {' '.join(cases)} ELSE 'speed' END" if cases else "'speed'"
        rows = f"SELECT lsn, tie, {layer} AS layer FROM ({merged.speed(view)})"
        counted += _placed(merged, f"{rows} WHERE {where}")
    elif lsns:
        facts_of = dict(_decoded(merged, view, lsns))
        counted += _matching(merged, view, facts_of, where, "speed")
    return sorted({*counted, *_side_inputs(view, counted, source.cut)})


def _side_inputs(view: View, counted: Sequence[Origin], cut: int) -> Iterator[Origin]:
    """The records of these rows' side inputs: the newest before each, such as its model."""
    if not view.side_inputs or not counted:
        return
    known = SideInputs([view], cut, log_reader.read_schema_history()).before(max(origin.lsn for origin in counted))
    for facts in known.values():
        rows = facts.select(["lsn", "topic", "partition", "offset"]).to_pylist()
        places = sorted(Origin(**row, layer="side input") for row in rows)
        for origin in counted:
            yield from [place for place in places if place.lsn < origin.lsn][-1:]


def _matching(merged: LocalAnswers, view: View, facts_of: Mapping[str, str], where: str, layer: str) -> list[Origin]:
    if not facts_of:
        return []
    partials = of_facts(view, facts_of, aggregates.COORDINATES)
    places = merged.con.execute(f"SELECT DISTINCT {PLACE} FROM ({partials}) WHERE {where}").fetchall()
    return [Origin(lsn, topic, partition, offset, layer) for lsn, topic, partition, offset in places]


def _placed(merged: LocalAnswers, sql: str) -> list[Origin]:
    """A sequence's rows carry their source position in `tie`: topic/1partition/1offset."""
    places = []
    for lsn, tie, layer in merged.con.execute(sql).fetchall():
        topic, partition, offset = tie.rsplit("/", 2)
        places.append(Origin(lsn, topic, int(partition) - 10**10, int(offset) - 10**18, layer))
    return places


def _decoded(merged: LocalAnswers, view: View, lsns: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Event type -> relation of the facts that the speed layer counted in those lsns."""
    records = _landed(lsns, ds.scalar(True))
    of = (ds.field("view") == row_types.DUPLICATE_ROW) & ds.field("lsn").isin(lsns)
    place = {"lsn": ds.field("lsn"), **{name: ds.field("control", name) for name in ("topic", "partition", "offset")}}
    losers = duckdb_reader.dataset(tables.SPEED_PARTIALS).to_table(columns=place, filter=of)
    facts_of = decode_logged(records, log_reader.read_schema_history()).facts
    for event_type, facts in record_outcomes.settled(facts_of, losers).items():
        if event_type in view.event_types:
            merged.con.register(f"decoded_{event_type}", facts)
            yield event_type, f"decoded_{event_type}"


def _landed(lsns: Collection[int], of: ds.Expression) -> pa.Table:
    """The records of these lsns, which may lie far apart, that match."""
    return log_reader.records(of & ds.field("lsn").isin(sorted(lsns)), joined((lsn, lsn) for lsn in lsns))


def raw(places: Sequence[Origin]) -> list[dict[str, Any]]:
    """The records as they were delivered, in the order of their places: layer, place, time, value and key.

    A record that is read otherwise by a revision is followed by what is read, in the layer `revision`.
    """
    if not places:
        return []
    records = _landed({p.lsn for p in places}, ds.field("offset").isin([p.offset for p in places]))
    rows = {(r["lsn"], r["topic"], r["partition"], r["offset"]): r for r in records.to_pylist()}
    said = log_reader.read_schema_history().revisions.contents
    found = list[dict[str, Any]]()
    for place in (place for place in places if place[:4] in rows):
        row, revision = rows[place[:4]], said.get(Place(*place[:4]))
        found.append({**_told(place), "time": row["timestamp"], "value": row["value"], "key": row["key"]})
        if revision is not None and (content := revision.content) is not None:
            read = {"time": revision.at, "value": content.value, "key": content.key}
            found.append(_told(place._replace(layer="revision", lsn=revision.lsn)) | read)
    return found


def _told(place: Origin) -> dict[str, Any]:
    return {"layer": place.layer, **place._asdict()}
