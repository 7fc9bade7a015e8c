"""Every answer a second time: from the records alone, by programs that share nothing with the views.

records (with what their producers meant them to be) -> Events -> plain SQL or a loop -> the rows that a view must serve

Answers are exact, also where a view's is approximate (`APPROXIMATE`), and know no horizon and no window: a record
counts however late, and once however often it was sent.
"""

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from spark_jobs.quality import oracle_loops
from spark_jobs.quality.oracle_events import Events, Partition

APPROXIMATE = {("orders_by_hour", "buyers"): 5 * 1.04 / 4096**0.5}
"""Relative error to allow: five standard errors of a HyperLogLog sketch of 2^12 registers (Flajolet et al. 2007)."""

EVENT_TYPES = (
    "order_placed", "order_executed", "page_viewed", "bus_position_reported", "sentence_posted",
    "flight_departed", "flight_arrived", "flight_cancelled", "airline_changed",
)  # fmt: skip

_NAMES = """
    SELECT carrier, name FROM airline_changed
    QUALIFY 1 = row_number() OVER (PARTITION BY carrier ORDER BY topic DESC, partition DESC, "offset" DESC)
    AND deleted IS NOT TRUE
"""

ANSWERS: Mapping[str, str | Callable[[Events], pa.Table]] = {
    "orders_by_day": """
        SELECT store_id, CAST(occurred_at AS DATE) AS day, count(*) AS orders,
               CAST(sum(quantity * unit_price_cents) AS BIGINT) AS revenue_cents
        FROM order_placed GROUP BY ALL""",
    "orders_by_hour": """
        SELECT store_id, date_trunc('hour', occurred_at) AS hour, count(*) AS orders,
               CAST(sum(quantity * unit_price_cents) AS BIGINT) AS revenue_cents, count(DISTINCT user_id) AS buyers
        FROM order_placed GROUP BY ALL""",
    "orders_by_colour": """
        SELECT colour, count(*) AS orders, count(*) FILTER (quantity >= 5) AS large_orders,
               CAST(sum(unit_price_cents) AS DOUBLE) / count(*) AS mean_unit_price_cents
        FROM order_placed GROUP BY ALL""",
    "page_views_per_user_hour": """
        SELECT user_id, date_trunc('hour', occurred_at) AS hour, count(*) AS page_views
        FROM page_viewed GROUP BY ALL""",
    "bus_latest": """
        SELECT bus_id, line, lat, lon, occurred_at AS reported_at FROM bus_position_reported
        QUALIFY 1 = row_number() OVER (
            PARTITION BY bus_id ORDER BY occurred_at DESC, topic DESC, partition DESC, "offset" DESC)""",
    "departures_by_airport_hour": """
        SELECT origin, hour, count(*) FILTER (has_left) AS departures, count(*) FILTER (NOT has_left) AS cancellations
        FROM (SELECT origin, date_trunc('hour', occurred_at) AS hour, true AS has_left FROM flight_departed
              UNION ALL SELECT origin, date_trunc('hour', occurred_at), false FROM flight_cancelled)
        GROUP BY ALL""",
    "airline_names": _NAMES,
    "delay_by_carrier_day": f"""
        SELECT f.*, n.name AS carrier_name
        FROM (SELECT carrier, CAST(occurred_at AS DATE) AS day, count(*) AS departures,
                     CAST(sum(delay_minutes) AS DOUBLE) / count(*) AS mean_delay, max(delay_minutes) AS max_delay,
                     var_samp(delay_minutes) AS variance_delay
              FROM flight_departed GROUP BY ALL) f LEFT JOIN ({_NAMES}) n USING (carrier)""",
    "word_count": oracle_loops.word_count,
    "sessions": oracle_loops.sessions,
    "trades": oracle_loops.trades,
    "aircraft_turnarounds": oracle_loops.aircraft_turnarounds,
}
"""View -> its answer: SQL over the events' relations, or a program."""


class Oracle:
    """The answers over some records, which are read once; the arguments are those of `Events`."""

    def __init__(self, records: pa.Table | str, upto: Mapping[Partition, int] | None = None) -> None:
        self._events = Events(records, upto)

    def expected(self, view: str) -> pa.Table:
        """The rows of a view, with the columns that it serves, in no order. Raises KeyError for other views."""
        answer = ANSWERS[view]
        if isinstance(answer, str):
            return self._events.ask(answer, *(e for e in EVENT_TYPES if re.search(rf"\b{e}\b", answer)))
        return answer(self._events)


def expected(view: str, records: pa.Table | str, upto: Mapping[Partition, int] | None = None) -> pa.Table:
    """One answer; for several over the same records make one `Oracle`."""
    return Oracle(records, upto).expected(view)
