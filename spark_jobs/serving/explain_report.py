"""An explanation for people and programs.

Explanation -> lines of text | a JSON object. Bytes are shown as text where they are text, sketches by their size.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from spark_jobs.engine import sketches
from spark_jobs.serving.explain import Explanation, Row
from spark_jobs.serving.formatting import Answer, plain, printable, text
from spark_jobs.serving.lineage import Event


def lines(found: Explanation, limit: int, width: int | None = None) -> Iterator[str]:
    """The explanation as text, at most `limit` rows of each part."""
    key = ", ".join(f"{name}={plain(value)}" for name, value in found.key.items())
    yield f"{found.view}, {printable(key)}"
    yield _versions(found)
    yield from _part("served", found.answer, limit, width)
    if found.below:
        below = found.below
        yield from _part(f"{len(below.rows):,} rows of {below.view} behind it", below.rows, limit, width)
        if below.rows:
            where = " ".join(f"{name}={plain(below.rows[0][name])}" for name in below.keys)
            yield printable(f"where the first of them comes from: tidemark explain {below.view} {where}")
        return
    for what, rows in found.batch.items():
        yield from _part(f"batch {what}, lsn <= {found.source.cut}", rows, limit, width)
    yield from _part(f"speed, lsn {found.source.cut + 1} to {found.head}", found.speed, limit, width)
    for one in found.lookups:
        where = f"{one['from']}, key {plain(one['key'])}"
        yield f"{one['column']} = {plain(one['value'])} is looked up in {where}: `tidemark explain` it as well"
    shown = f", the first {len(found.events):,}" if len(found.events) < found.event_count else ""
    events = [_event(one) for one in found.events]
    yield from _part(f"{found.event_count:,} records behind it{shown}", events, len(events), width)


def _versions(found: Explanation) -> str:
    source = found.source
    if source.batch_version is None:
        return f"publication {found.publication}: never built, the speed layer answers alone; head {found.head}"
    results = "" if source.results_version is None else f", results version {source.results_version}"
    horizon = "" if source.horizon is None else f", horizon {plain(source.horizon)}"
    return (
        f"publication {found.publication}: batch version {source.batch_version}{results}, cut {source.cut}{horizon}; "
        f"head {found.head}"
    )


def _part(title: str, rows: list[Row], limit: int, width: int | None) -> Iterator[str]:
    yield ""
    if not rows:
        yield f"{title}: nothing"
        return
    yield f"{title}, the first {limit:,} of {len(rows):,} rows:" if len(rows) > limit else f"{title}:"
    names = tuple(rows[0])
    kinds = tuple("BIGINT" if isinstance(rows[0][name], int | float | Decimal) else "STRING" for name in names)
    shown = [tuple(_shown(row[name]) for name in names) for row in rows[:limit]]
    yield text(Answer(names, kinds, shown), "table", width).rstrip("\n").rpartition("\n")[0]


def _shown(value: Any) -> Any:
    """A sketch by its estimate; other values as they are."""
    if not isinstance(value, bytes):
        return value
    try:
        return f"sketch of about {sketches.estimate(value):,} values, {len(value):,} bytes"
    except Exception:  # the library has no error class of its own
        return f"{len(value):,} bytes"


def _event(event: Event) -> Row:
    place = event.origin
    return {
        "layer": place.layer,
        "lsn": place.lsn,
        "topic": place.topic,
        "partition": place.partition,
        "offset": place.offset,
        "time": event.timestamp,
        "value": _bytes(event.value),
    }


def _bytes(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def as_json(found: Explanation) -> dict[str, Any]:
    """The explanation as an object for json.dumps with `default=plain`."""
    source = found.source
    return {
        "view": found.view,
        "key": found.key,
        "publication": found.publication,
        "batch_version": source.batch_version,
        "results_version": source.results_version,
        "cut": source.cut,
        "horizon": source.horizon,
        "head": found.head,
        "served": found.answer,
        "below": {"view": found.below.view, "rows": found.below.rows} if found.below else None,
        "batch": {what: [_row(row) for row in rows] for what, rows in found.batch.items()},
        "speed": [_row(row) for row in found.speed],
        "lookups": found.lookups,
        "records": found.event_count,
        "first_records": [{**_event(one), "key": _bytes(one.key)} for one in found.events],
    }


def _row(row: Row) -> Row:
    return {name: _shown(value) for name, value in row.items()}
