"""The oracle's answer about the buses: where they go, how fast, and when they will be there.

reports of a bus, in order of time -> one after the other -> rows
"""

from itertools import groupby
from math import floor, sqrt
from operator import itemgetter

import pyarrow as pa

from spark_jobs.sample.oracle.events import INSTANT, Events
from spark_jobs.sample.oracle.loops import IN_TIME, MINUTE_US, Row, rows_of, table_of


def bus_speed(events: Events) -> pa.Table:
    """Way and speed since the bus's report before, on a plane; the next of the four stops, and the time to it."""
    query = f"""SELECT bus_id, epoch_us(occurred_at), line, lat, lon FROM bus_position_reported
        ORDER BY bus_id, {IN_TIME}"""
    found: list[Row] = []
    for bus, reports in groupby(rows_of(events, query, "bus_position_reported"), itemgetter(0)):
        before: Row | None = None
        for report in reports:
            _, at, line, lat, lon = report
            stop, way = _next_stop(lat, lon)
            metres, speed, arrives = None, None, None
            if before:
                micros, driven = at - before[1], _metres(lat - before[3], lon - before[4], lat)
                metres = floor(driven + 0.5)
                if 0 < micros <= 5 * MINUTE_US:
                    speed = driven * 3.6e6 / micros
                    arrives = at + floor(way / driven * micros) if driven >= 1 and way < 1e6 else None
            found.append((bus, line, at, metres, speed, stop, arrives))
            before = report
    return table_of(
        found, bus_id=pa.string(), line=pa.string(), reported_at=INSTANT, metres=pa.int64(), speed_kmh=pa.float64(),
        next_stop=pa.string(), arrives_at=INSTANT,
    )  # fmt: skip


def _next_stop(lat: float, lon: float) -> tuple[str, float]:
    """Which, and how far: buses go round the centre against the clock, and stops lie at the bus's distance from it."""
    up, aside = lat - 47.05, lon - 8.3
    far = sqrt(up * up + aside * aside)
    if aside > 0 and up >= 0:
        return "north", _metres(far - up, -aside, lat)
    if up > 0:
        return "west", _metres(-up, -far - aside, lat)
    return ("south", _metres(-far - up, -aside, lat)) if aside < 0 else ("east", _metres(-up, far - aside, lat))


def _metres(north: float, east: float, lat: float) -> float:
    """So many degrees to the north and to the east, at a latitude; its cosine by the series, as the view says."""
    r = lat * 1.7453292519943295e-2
    narrow = 1 - r * r / 2 + r * r * r * r / 24 - r * r * r * r * r * r / 720
    up, aside = 111_320 * north, 111_320 * narrow * east
    return sqrt(up * up + aside * aside)
