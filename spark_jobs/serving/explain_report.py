"""An explanation for people and programs.

Explanation -> lines of text | a JSON object. Bytes are shown as text where they are text, sketches by their size.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from spark_jobs.engine import sketches
from spark_jobs.serving.explain import Explanation, Row
from spark_jobs.serving.formatting import Answer, plain, printable, text


def lines(explanation: Explanation, limit: int, width: int | None = None) -> Iterator[str]:
    """The explanation as text, at most `limit` rows of each part."""
    key = ", ".join(f"{name}={plain(value)}" for name, value in explanation.key.items())
    yield f"{explanation.view}, {printable(key)}"
    yield _versions(explanation)
    yield from _part("served", explanation.answer, limit, width)
    if explanation.below:
        base, rows = explanation.below
        yield from _part(f"{len(rows):,} rows of {base.name} behind it", rows, limit, width)
        if rows:
            where = " ".join(f"{name}={plain(rows[0][name])}" for name in base.served_keys)
            yield printable(f"where the first of them comes from: tidemark explain {base.name} {where}")
        return
    for what, rows in explanation.batch.items():
        yield from _part(f"batch {what}, lsn <= {explanation.source.cut}", rows, limit, width)
    yield from _part(f"speed, lsn {explanation.source.cut + 1} to {explanation.head}", explanation.speed, limit, width)
    for lookup in explanation.lookups:
        where = f"{lookup['from']}, key {plain(lookup['key'])}"
        yield f"{lookup['column']} = {plain(lookup['value'])} is looked up in {where}: `tidemark explain` it as well"
    shown = f", the first {len(explanation.events):,}" if len(explanation.events) < explanation.event_count else ""
    events = [{name: _text(event[name]) for name in event if name != "key"} for event in explanation.events]
    yield from _part(f"{explanation.event_count:,} records behind it{shown}", events, len(events), width)


def _versions(about: Explanation) -> str:
    source = about.source
    if source.batch_version is None:
        return f"publication {about.publication}: never built, the speed layer answers alone; head {about.head}"
    results = "" if source.results_version is None else f", results version {source.results_version}"
    horizon = "" if source.horizon is None else f", horizon {plain(source.horizon)}"
    return (
        f"publication {about.publication}: batch version {source.batch_version}{results}, cut {source.cut}{horizon}; "
        f"head {about.head}"
    )


def _part(title: str, rows: Sequence[Row], limit: int, width: int | None) -> Iterator[str]:
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


def _text(value: Any) -> Any:
    """Bytes as text, or in hexadecimal; other values as they are."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def as_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as an object for json.dumps with `default=plain`."""
    below = explanation.below
    return {
        "view": explanation.view,
        "key": explanation.key,
        "publication": explanation.publication,
        **explanation.source.columns(),
        "head": explanation.head,
        "served": explanation.answer,
        "below": {"view": below[0].name, "rows": below[1]} if below else None,
        "batch": {what: [_row(row) for row in rows] for what, rows in explanation.batch.items()},
        "speed": [_row(row) for row in explanation.speed],
        "lookups": explanation.lookups,
        "records": explanation.event_count,
        "first_records": [{name: _text(value) for name, value in event.items()} for event in explanation.events],
    }


def _row(row: Row) -> Row:
    return {name: _shown(value) for name, value in row.items()}
