"""Revisions as rows of the log, and back: the place is that of the record, key and value those to be read.

What is said stands in headers of our own; a producer's headers of such names are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.revisions import OF_QUARANTINE, Action, Content, Place, Revision, Revisions

ABOUT = "revision."
"""Begins the names of those headers of a row that are the revision's own; the others are the record's to be read."""
TEXTS = ("action", "of_lsn", "reason", "by", "request", "event_type", "event_id", "topic")
"""What a row says of a revision by headers, as texts."""
ERASED = "erased"
"""The action of an entry that tells what was erased, and decides nothing: the records' own rows say it."""


def rows(revisions: Sequence[Revision], landed_on: date) -> pa.Table:
    """Revisions as rows of the log: the place is that of the record, key and value those to be read."""
    return pa.Table.from_pylist([_row(said, landed_on) for said in revisions], schema=row_types.LOG)


def _row(said: Revision, landed_on: date) -> dict[str, Any]:
    about = {"action": said.action, "of_lsn": str(said.place.lsn), "reason": said.reason, "by": said.by}
    about["request"] = said.request
    if said.event_type is not None:
        about["event_type"] = said.event_type
    if said.event_id is not None:
        about["event_id"] = said.event_id
    if said.content is not None:
        about["topic"] = said.content.topic
    headers = [(f"{ABOUT}{name}", text.encode()) for name, text in about.items()]
    headers += [(f"{ABOUT}identity", said.identity)] if said.identity is not None else []
    sent = said.content.headers if said.content is not None else ()
    read = [(name, value) for name, value in sent if not name.startswith(ABOUT)]  # a producer says nothing of records
    _, topic, partition, offset = said.place
    return {
        **{"lsn": said.lsn, "landed_on": landed_on, "kind": row_types.REVISION_ROW, "timestamp": said.at},
        **{"topic": topic, "partition": partition, "offset": offset},
        **({"key": said.content.key, "value": said.content.value} if said.content is not None else {}),
        "headers": [{"key": name, "value": value} for name, value in (*headers, *read)],
    }


def from_rows(logged: Iterable[Mapping[str, Any]]) -> Revisions:
    """The revisions in the log's rows of that kind, in any order."""
    still = (row for row in logged if not tells_erased(row))
    return Revisions(tuple(sorted(map(_revision, still), key=lambda said: said.lsn)))


def erased_row(said: Sequence[Revision], landed_on: date) -> pa.Table:
    """What stands in the log in the place of the erasures of one lsn once the bytes are gone: which records they were,
    whose word it was, and why. `value`: their places, as an Arrow stream."""
    first, places = (
        said[0],
        pa.Table.from_pylist([one.place._asdict() for one in said], pa.schema(row_types.COORDINATES)),
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, places.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(places)
    about = {"action": ERASED, "reason": first.reason, "by": first.by, "request": first.request}
    row = {
        **{"lsn": first.lsn, "landed_on": landed_on, "kind": row_types.REVISION_ROW, "timestamp": first.at},
        "value": sink.getvalue().to_pybytes(),
        "headers": [{"key": f"{ABOUT}{name}", "value": text.encode()} for name, text in about.items()],
    }
    return pa.Table.from_pylist([row], schema=row_types.LOG)


def tells_erased(row: Mapping[str, Any]) -> bool:
    """Whether the row of that kind only tells what was erased."""
    return bool(_about(row)["action"] == ERASED.encode())


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, by the name of its header: the first of each, as those of the record come after ours."""
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    return {name.removeprefix(ABOUT): value for name, value in reversed(headers) if name.startswith(ABOUT)}


def _revision(row: Mapping[str, Any]) -> Revision:
    headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
    about = _about(row)
    text = {name: about[name].decode() for name in TEXTS if name in about}
    content = None
    if "topic" in text:
        of_record = tuple((name, value) for name, value in headers if not name.startswith(ABOUT))
        content = Content(text["topic"], row["key"], row["value"], of_record)
    return Revision(
        lsn=row["lsn"],
        action=(action := Action(text["action"])),
        place=Place(int(text["of_lsn"]), row["topic"], row["partition"], row["offset"]),
        reason=text["reason"],
        by=text["by"],
        at=row["timestamp"],
        request=text["request"],
        event_type=text.get("event_type"),
        event_id=text.get("event_id"),
        identity=None if action in OF_QUARANTINE else about.get("identity"),
        content=content,
    )
