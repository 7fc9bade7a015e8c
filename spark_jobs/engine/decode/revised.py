"""Apply what was said afterwards of single records (`contracts.revisions`).

rejected records + those about their places -> reconsidered; facts + those about their identities -> revised

A record keeps its place and its raw bytes. What is to be read in the place of them is judged as if it had been sent.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.contracts.model import Contracts
from spark_jobs.contracts.revisions import Content, InForce, Revision
from spark_jobs.engine.decode import identity
from spark_jobs.engine.decode.assemble import Decoded, bare
from spark_jobs.engine.decode.joined import joined, places, places_of, with_facts
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.engine.dedupe import divided

CONTENT = ("topic", "key", "value", "headers")
NOTHING = Decoded({}, row_types.REJECT.empty_table())


def reconsidered(decoded: Decoded, said: InForce, known: Contracts, later: Contracts) -> Decoded:
    """With the rejected records that are readmitted, and those that later versions accept.

    Of the others the first verdict stands, and of those that are discarded.
    """
    rejects = decoded.rejects.select(row_types.RECORD.names)
    revisions = _about_places(rejects, said)
    unnamed = np.ones(rejects.num_rows, bool)
    unnamed[[*revisions]] = False
    again = bare(rejects.filter(pa.array(unnamed)), later) if later is not known else NOTHING
    readmitted = {row: one.content for row, one in revisions.items() if one.content is not None}
    return with_facts(decoded, joined([again, replace(read_as(rejects, readmitted, later), rejects=NOTHING.rejects)]))


def revised(decoded: Decoded, records: pa.Table, said: InForce, later: Contracts) -> Decoded:
    """With the facts that are superseded, and without those that are retracted.

    These are rejects, as are the former where the schemas refuse what is to be read in their place.
    """
    facts, found = dict(decoded.facts), list[pa.Table]()
    for event_type in said.event_types & facts.keys():
        is_named = pc.is_in(facts[event_type]["identity"], said.identities)
        if (hit := facts[event_type].filter(is_named)).num_rows:
            found.append(places(hit).append_column("identity", hit["identity"]))
            facts[event_type] = facts[event_type].filter(pc.invert(is_named))
    if not found:
        return decoded
    raw, identities = _raw(records, pa.concat_tables(found))
    kept = Decoded({name: rows for name, rows in facts.items() if rows.num_rows}, decoded.rejects)
    revisions = [said.by_identity[one] for one in identities]
    superseded = {row: one.content for row, one in enumerate(revisions) if one.content is not None}
    return joined([kept, _retracted(raw, revisions), _superseded(raw, superseded, later)])


def read_as(records: pa.Table, contents: dict[int, Content], contracts: Contracts) -> Decoded:
    """Some of the records (their rows), decoded with another content, at their own places.

    Meanwhile the row stands for the offset, as two records may be read as of the same topic.
    """
    if not contents:
        return NOTHING
    rows = pa.array(contents, pa.int64())
    values = [content._asdict() for content in contents.values()]
    columns = {
        **{name: [value[name] for value in values] for name in ("topic", "key", "value")},
        "headers": [[{"key": k, "value": v} for k, v in value["headers"]] for value in values],
        "offset": rows,
    }
    read = records.take(rows)
    for name, column in columns.items():
        read = _with(read, name, pa.array(column, row_types.RECORD.field(name).type))
    decoded = bare(read, contracts)
    facts = {name: _at(rows, records) for name, rows in decoded.facts.items()}
    named = {name: _with(rows, "identity", identity.of(name, rows)) for name, rows in facts.items()}
    return Decoded(named, _at(decoded.rejects, records))


def _about_places(rejects: pa.Table, said: InForce) -> dict[int, Revision]:
    """Row of a rejected record -> what was said of it."""
    if not said.by_place or not rejects.num_rows:
        return {}
    near = np.flatnonzero(pc.is_in(rejects["lsn"], said.lsns).to_numpy())
    named = zip(near.tolist(), places_of(rejects.take(pa.array(near))), strict=True)
    return {row: said.by_place[place] for row, place in named if place in said.by_place}


def _raw(records: pa.Table, found: pa.Table) -> tuple[pa.Table, list[bytes]]:
    """The records of the facts found, and their identities."""
    identities = dict(zip(places_of(found), found["identity"].to_pylist(), strict=True))
    raw = divided(records, places(found))[1]
    return raw, [identities[place] for place in places_of(raw)]


def _retracted(raw: pa.Table, revisions: Sequence[Revision]) -> Decoded:
    rows = [row for row, one in enumerate(revisions) if one.content is None]
    told = {
        "event_type": [revisions[row].event_type for row in rows],
        "schema_version": [None] * len(rows),
        "reason": [str(Reason.RETRACTED)] * len(rows),
        "field": [None] * len(rows),
        "detail": [f"{revisions[row].reason} ({revisions[row].by})" for row in rows],
    }
    rejects = raw.take(pa.array(rows, pa.int64()))
    for name, values in told.items():
        rejects = rejects.append_column(name, pa.array(values, row_types.REJECT.field(name).type))
    return Decoded({}, rejects.cast(row_types.REJECT))


def _superseded(raw: pa.Table, contents: dict[int, Content], later: Contracts) -> Decoded:
    """The facts of the other content; rejects with the raw bytes."""
    read, row_of = read_as(raw, contents, later), {place: row for row, place in enumerate(places_of(raw))}
    rejects, refused = read.rejects, pa.array([row_of[place] for place in places_of(read.rejects)], pa.int64())
    for name in CONTENT:
        rejects = _with(rejects, name, raw[name].take(refused))
    return Decoded(read.facts, rejects)


def _at(rows: pa.Table, records: pa.Table) -> pa.Table:
    """The rows at the places of the records whose numbers are their offsets."""
    numbers = rows["offset"]
    for name in ("topic", "offset"):
        rows = _with(rows, name, records[name].take(numbers))
    return rows


def _with(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), column)
