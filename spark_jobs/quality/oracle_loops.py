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

from spark_jobs.quality.oracle_events import INSTANT, Events

Row = tuple[Any, ...]

GAP_US = 30 * 60 * 1_000_000
MINUTE_US = 60 * 1_000_000
IN_TIME = 'occurred_at, topic, partition, "offset"'
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def word_count(events: Events) -> pa.Table:
    """A word is a run of a-z and 0-9, after A-Z became a-z; other letters part words."""
    words: Counter[str] = Counter()
    for text, times in _rows(events, "SELECT text, count(*) FROM sentence_posted GROUP BY text", "sentence_posted"):
        for word in re.findall("[a-z0-9]+", text.translate(LOWER)):
            words[word] += times
    return _table(words.items(), word=pa.string(), occurrences=pa.int64())


def sessions(events: Events) -> pa.Table:
    """The views of one user, each at most 30 minutes after the one before."""
    query = f"SELECT user_id, epoch_us(occurred_at), url FROM page_viewed ORDER BY user_id, {IN_TIME}"
    found: list[list[Row]] = []
    for _, views in groupby(_rows(events, query, "page_viewed"), itemgetter(0)):
        begun = len(found)
        for view in views:
            if len(found) > begun and view[1] - found[-1][-1][1] <= GAP_US:
                found[-1].append(view)
            else:
                found.append([view])
    rows = ((s[0][0], s[0][1], s[-1][1], len(s), s[0][2], s[-1][2]) for s in found)
    return _table(
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
    items = _rows(events, query, "order_placed", "order_executed")
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
    return _table(
        found, comp_id=pa.int64(), status=pa.string(), waited_from=INSTANT, waited_until=INSTANT, order_id=pa.string(),
        colour=pa.string(), execution_id=pa.string(), venue=pa.string(),
    )  # fmt: skip


def _trade(status: str, waited: Row, until: Row | None = None, with_it: bool = False) -> Row:
    both = {item[2]: item[3:] for item in (waited, until if with_it else None) if item}
    nothing = (None, None)
    return waited[0], status, waited[1], until and until[1], *both.get(True, nothing), *both.get(False, nothing)


def aircraft_turnarounds(events: Events) -> pa.Table:
    """Each arrival of an aircraft that is followed by a departure of it, and the whole minutes between them."""
    query = f"""
        SELECT tailnum, epoch_us(occurred_at), has_arrived, airport, flight_id FROM (
            SELECT *, true AS has_arrived, dest AS airport FROM flight_arrived UNION ALL BY NAME
            SELECT *, false AS has_arrived, origin AS airport FROM flight_departed)
        WHERE tailnum IS NOT NULL ORDER BY tailnum, {IN_TIME}"""
    moves = _rows(events, query, "flight_arrived", "flight_departed")
    rows = (
        (a[0], a[3], a[4], a[1], d[3], d[4], d[1], (d[1] - a[1]) // MINUTE_US)
        for a, d in pairwise(moves)
        if a[0] == d[0] and a[2] and not d[2]
    )
    return _table(
        rows, tailnum=pa.string(), airport=pa.string(), arrived_with=pa.string(), arrived_at=INSTANT,
        next_airport=pa.string(), departed_with=pa.string(), departed_at=INSTANT, ground_minutes=pa.int64(),
    )  # fmt: skip


def _rows(events: Events, query: str, *event_types: str) -> Iterator[Row]:
    for batch in events.ask(query, *event_types).to_batches(max_chunksize=100_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _table(rows: Iterable[Row], **kinds: pa.DataType) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [
        pa.array(column, pa.int64()).cast(kind) if kind == INSTANT else pa.array(column, kind)
        for column, kind in zip(columns, kinds.values(), strict=True)
    ]
    return pa.table(arrays, names=list(kinds))
