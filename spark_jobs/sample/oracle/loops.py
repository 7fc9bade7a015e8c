"""The oracle's answers that are easier to believe as a loop than as SQL: words, and what depends on order.

Events, in order of time -> one event after the other -> rows
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pyarrow as pa

from spark_jobs.sample.oracle.events import INSTANT, Events

Row = tuple[Any, ...]

GAP_US = 30 * 60 * 1_000_000
MINUTE_US = 60 * 1_000_000
IN_TIME = 'occurred_at, topic, partition, "offset"'
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def word_count(events: Events) -> pa.Table:
    """A word is a run of a-z and 0-9, after A-Z became a-z; other letters part words."""
    words: Counter[str] = Counter()
    for text, times in rows_of(events, "SELECT text, count(*) FROM sentence_posted GROUP BY text", "sentence_posted"):
        for word in re.findall("[a-z0-9]+", text.translate(LOWER)):
            words[word] += times
    return table_of(words.items(), word=pa.string(), occurrences=pa.int64())


def sessions(events: Events) -> pa.Table:
    """The views of one user, each at most 30 minutes after the one before."""
    query = f"SELECT user_id, epoch_us(occurred_at), url FROM page_viewed ORDER BY user_id, {IN_TIME}"
    found: list[list[Row]] = []
    for _, views in groupby(rows_of(events, query, "page_viewed"), itemgetter(0)):
        begun = len(found)
        for view in views:
            if len(found) > begun and view[1] - found[-1][-1][1] <= GAP_US:
                found[-1].append(view)
            else:
                found.append([view])
    rows = ((s[0][0], s[0][1], s[-1][1], len(s), s[0][2], s[-1][2]) for s in found)
    return table_of(
        rows, user_id=pa.int64(), started_at=INSTANT, ended_at=INSTANT, pages=pa.int64(),
        entry_url=pa.string(), exit_url=pa.string(),
    )  # fmt: skip


def trades(events: Events) -> pa.Table:
    """Per company at most one item waits: the other kind trades with it and clears it, the same kind replaces it."""
    query = f"""
        SELECT comp_id, ts, is_order, id, attribute FROM (
            SELECT *, epoch_us(occurred_at) AS ts, true AS is_order, order_id AS id, colour AS attribute
            FROM order_placed UNION ALL BY NAME
            SELECT *, epoch_us(occurred_at) AS ts, false AS is_order, execution_id AS id, venue AS attribute
            FROM order_executed)
        ORDER BY comp_id, {IN_TIME}"""
    found: list[Row] = []
    items = rows_of(events, query, "order_placed", "order_executed")
    for _, of_company in groupby(items, itemgetter(0)):
        waiting: Row | None = None
        for item in of_company:
            if waiting is None:
                waiting = item
            elif waiting[2] == item[2]:
                found.append(_trade("superseded", waiting, until=item))
                waiting = item
            else:
                found.append(_trade("traded", waiting, until=item, with_it=True))
                waiting = None
        if waiting is not None:
            found.append(_trade("waiting", waiting))
    return table_of(
        found, comp_id=pa.int64(), status=pa.string(), waited_from=INSTANT, waited_until=INSTANT, order_id=pa.string(),
        colour=pa.string(), execution_id=pa.string(), venue=pa.string(),
    )  # fmt: skip


def _trade(status: str, waited: Row, until: Row | None = None, with_it: bool = False) -> Row:
    both = {item[2]: item[3:] for item in (waited, until if with_it else None) if item}
    nothing = (None, None)
    return waited[0], status, waited[1], until and until[1], *both.get(True, nothing), *both.get(False, nothing)


def trades_by_colour(events: Events) -> pa.Table:
    done = [one for one in trades(events).to_pylist() if one["status"] == "traded"]
    last: dict[Row, Any] = {}
    for one in done:
        pair = one["colour"], one["venue"]
        last[pair] = max(last.get(pair, one["waited_until"]), one["waited_until"])
    counts = Counter((one["colour"], one["venue"]) for one in done)
    schema = pa.schema(
        [("colour", pa.string()), ("venue", pa.string()), ("trades", pa.int64()), ("last_traded_at", INSTANT)]
    )
    rows = [{"colour": c, "venue": v, "trades": n, "last_traded_at": last[c, v]} for (c, v), n in counts.items()]
    return pa.Table.from_pylist(rows, schema)


def aircraft_turnarounds(events: Events) -> pa.Table:
    """Each arrival of an aircraft that is followed by a departure of it, and the whole minutes between them."""
    query = f"""
        SELECT tailnum, epoch_us(occurred_at), has_arrived, airport, flight_id FROM (
            SELECT *, true AS has_arrived, dest AS airport FROM flight_arrived UNION ALL BY NAME
            SELECT *, false AS has_arrived, origin AS airport FROM flight_departed)
        WHERE tailnum IS NOT NULL ORDER BY tailnum, {IN_TIME}"""
    moves = rows_of(events, query, "flight_arrived", "flight_departed")
    rows = (
        (a[0], a[3], a[4], a[1], d[3], d[4], d[1], (d[1] - a[1]) // MINUTE_US)
        for a, d in pairwise(moves)
        if a[0] == d[0] and a[2] and not d[2]
    )
    return table_of(
        rows, tailnum=pa.string(), airport=pa.string(), arrived_with=pa.string(), arrived_at=INSTANT,
        next_airport=pa.string(), departed_with=pa.string(), departed_at=INSTANT, ground_minutes=pa.int64(),
    )  # fmt: skip


def page_views_by_zip(events: Events) -> pa.Table:
    """Each page view, with what the viewer's profile said of the ZIP code when the page was viewed."""
    rows = _as_of(events, "user_id", ("profile_changed", "zip"), ("page_viewed", "url"))
    found = ((user, at, url, profile and profile[1]) for user, at, (url,), profile in rows)
    return table_of(found, user_id=pa.int64(), viewed_at=INSTANT, url=pa.string(), zip=pa.string())


def clicks_with_user_name(events: Events) -> pa.Table:
    rows = _as_of(events, "user_id", ("profile_changed", "name"), ("ad_clicked", "ad_id", "impression_id"))
    found = ((user, at, *click, profile and profile[1]) for user, at, click, profile in rows)
    return table_of(
        found, user_id=pa.int64(), clicked_at=INSTANT, ad_id=pa.string(), impression_id=pa.string(),
        user_name=pa.string(),
    )  # fmt: skip


def departures_with_weather(events: Events) -> pa.Table:
    """The weather before a departure, unless it was observed more than two hours before."""
    measured = ("temp_f", "wind_mph", "visibility_miles")
    rows = _as_of(events, "origin", ("weather_observed", *measured), ("flight_departed", "flight_id", "delay_minutes"))
    found = (
        (origin, flight, at, delay, *(weather if weather and at - weather[0] <= 2 * 60 * MINUTE_US else (None,) * 4))
        for origin, at, (flight, delay), weather in rows
    )
    return table_of(
        found, origin=pa.string(), flight_id=pa.string(), departed_at=INSTANT, delay_minutes=pa.int64(),
        observed_at=INSTANT, temp_f=pa.float64(), wind_mph=pa.float64(), visibility_miles=pa.float64(),
    )  # fmt: skip


def _as_of(events: Events, key: str, dimension: tuple[str, ...], fact: tuple[str, ...]) -> Iterator[Row]:
    """(key, microseconds, values of the fact, microseconds and values of the dimension before it, or None).

    dimension, fact: the event type, then the fields that are its values; those of what was removed are None.
    """
    kinds = [
        f'SELECT {key}, occurred_at, topic, partition, "offset", {place} AS place, coalesce(deleted, false) AS gone, '
        f"row({', '.join(fields)}) AS v{place} FROM {event_type}"
        for place, (event_type, *fields) in enumerate((dimension, fact))
    ]
    query = f"""SELECT {key}, epoch_us(occurred_at), place, gone, v0, v1
        FROM ({" UNION ALL BY NAME ".join(kinds)}) ORDER BY {key}, {IN_TIME}"""
    of_key, known = None, None
    for one, at, place, gone, said, happened in rows_of(events, query, dimension[0], fact[0]):
        if one != of_key:
            of_key, known = one, None
        if place == 1:
            yield one, at, tuple(happened.values()), known
        else:
            known = (at, *(None if gone else value for value in said.values()))


def order_state(events: Events) -> pa.Table:
    """An order is open from its first placing, by command or in fact, to the first cancel after that."""
    query = f"""
        SELECT order_id, epoch_us(occurred_at), action, command_id FROM (
            SELECT * FROM order_commanded UNION ALL BY NAME SELECT *, 'placed' AS action FROM order_placed)
        ORDER BY order_id, {IN_TIME}"""
    found: list[Row] = []
    for order, entries in groupby(rows_of(events, query, "order_commanded", "order_placed"), itemgetter(0)):
        state, since, changes = "none", 0, 0
        for _, at, action, command in entries:
            reason = _refusal(state, action)
            if reason:
                found.append((order, "refused", state, at, 0, command, reason))
            elif action in ("place", "placed"):
                state, since = ("open", at) if state == "none" else (state, since)
            else:
                state, changes = ("open", changes + 1) if action == "change" else ("cancelled", changes)
        if state != "none":
            found.append((order, "state", state, since, changes, None, None))
    return table_of(
        found, order_id=pa.string(), entry=pa.string(), state=pa.string(), since=INSTANT, changes=pa.int64(),
        command_id=pa.string(), reason=pa.string(),
    )  # fmt: skip


def _refusal(state: str, action: str) -> str | None:
    if action == "placed":
        return None
    if action == "place":
        return None if state == "none" else "placed before"
    return {"none": "not placed", "cancelled": "cancelled before", "open": None}[state]


def rows_of(events: Events, query: str, *event_types: str) -> Iterator[Row]:
    """The answer to a query over these event types, a row at a time."""
    for batch in events.ask(query, *event_types).to_batches(max_chunksize=100_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def table_of(rows: Iterable[Row], **kinds: pa.DataType) -> pa.Table:
    """Rows of columns of these kinds; an instant is in microseconds."""
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [
        pa.array(column, pa.int64()).cast(kind) if kind == INSTANT else pa.array(column, kind)
        for column, kind in zip(columns, kinds.values(), strict=True)
    ]
    return pa.table(arrays, names=list(kinds))
