"""Every answer a second time: from the records alone, by programs that share nothing with the views.

records (with what their producers meant them to be) -> Events -> plain SQL or a loop -> the rows that a view must serve

Answers are exact, also where a view's is approximate (`APPROXIMATE`), and know no horizon and no window: a record
counts however late, and once however often it was sent.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.sample.oracle import buses, loops, outcomes
from spark_jobs.sample.oracle.events import Events, Partition
from spark_jobs.sample.oracle.sql import NAMES, RATES, SETTINGS, STOCK, clicks, rates
from spark_jobs.sample.reference_decoder import verdict
from spark_jobs.sample.reference_decoder.schema_times import Times, times

APPROXIMATE = {"orders_by_hour": {"buyers": 5 * 1.04 / 4096**0.5}}
"""Relative error to allow: five standard errors of a HyperLogLog sketch of 2^12 registers (Flajolet et al. 2007)."""

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
    "orders_last_8_minutes": """
        SELECT store_id, count(*) AS orders, CAST(sum(quantity * unit_price_cents) AS BIGINT) AS revenue_cents
        FROM order_placed
        WHERE occurred_at >= time_bucket(INTERVAL 10 SECONDS, $now) - INTERVAL 470 SECONDS
        AND occurred_at < time_bucket(INTERVAL 10 SECONDS, $now) + INTERVAL 10 SECONDS
        GROUP BY ALL""",
    "average_price_sliding": """
        SELECT colour, window_start, window_start + INTERVAL 10 MINUTES AS window_end, count(*) AS orders,
               CAST(sum(unit_price_cents) AS DOUBLE) / count(*) AS mean_unit_price_cents
        FROM order_placed JOIN (
            SELECT DISTINCT date_trunc('minute', occurred_at) - to_minutes(CAST(back AS INTEGER)) AS window_start
            FROM order_placed, range(10) AS steps(back)) AS windows
        ON occurred_at >= window_start AND occurred_at < window_start + INTERVAL 10 MINUTES
        GROUP BY ALL""",
    "items_sold_last_hour": """
        SELECT product_id, CAST(sum(quantity) AS BIGINT) AS units
        FROM order_placed
        WHERE occurred_at >= date_trunc('minute', $now) - INTERVAL 59 MINUTES
        AND occurred_at < date_trunc('minute', $now) + INTERVAL 1 MINUTE
        GROUP BY ALL""",
    "top_sellers": """
        SELECT day, product_id, units, orders, rank FROM (
            SELECT *, row_number() OVER (PARTITION BY day ORDER BY units DESC, product_id) AS rank
            FROM (SELECT CAST(occurred_at AS DATE) AS day, product_id, CAST(sum(quantity) AS BIGINT) AS units,
                         count(*) AS orders FROM order_placed GROUP BY ALL))
        WHERE rank <= 10""",
    "event_rates": RATES,
    "event_anomalies": f"""
        SELECT event_type, nullif(CAST(sum(n) FILTER (age = 1) AS BIGINT), 0) AS events,
               nullif(CAST(sum(n) FILTER (age > 1) AS BIGINT), 0) AS events_before,
               nullif(CAST(sum(n * n) FILTER (age > 1) AS BIGINT), 0) AS squares_before,
               (max(n) FILTER (age = 1) - avg(n) FILTER (age > 1))
               / nullif(stddev_samp(n) FILTER (age > 1), 0) AS z_score
        FROM (SELECT t.event_type, age, coalesce(events, 0) AS n
              FROM (SELECT DISTINCT event_type FROM ({RATES})) t CROSS JOIN range(1, 62) AS ages(age)
              LEFT JOIN ({RATES}) r ON r.event_type = t.event_type
              AND minute = date_trunc('minute', $now) - to_minutes(CAST(age AS INTEGER)))
        GROUP BY event_type HAVING sum(n) > 0""",
    "orders_current": """
        SELECT order_id, user_id, store_id, status, amount_cents, updated_at, occurred_at AS changed_at
        FROM order_row_changed WHERE op IS NOT NULL
        QUALIFY 1 = row_number() OVER (
            PARTITION BY order_id ORDER BY topic DESC, partition DESC, "offset" DESC)
        AND deleted IS NOT TRUE""",
    "stock_on_hand": STOCK,
    "stock_low": f"SELECT product_id, received, ordered, on_hand FROM ({STOCK}) WHERE on_hand < 100",
    "lift_rides_sliding": """
        SELECT lift_id, window_start, window_start + INTERVAL 10 MINUTES AS window_end, count(*) AS rides
        FROM (SELECT lift_id, unnest([slot, slot - INTERVAL 5 MINUTES]) AS window_start
              FROM (SELECT lift_id, time_bucket(INTERVAL 5 MINUTES, occurred_at) AS slot FROM lift_ride_taken))
        GROUP BY ALL""",
    "vitals_by_person_hour": """
        SELECT person_id, date_trunc('hour', occurred_at) AS hour, CAST(sum(steps) AS BIGINT) AS steps,
               CAST(sum(heart_rate) AS DOUBLE) / count(*) AS mean_heart_rate, max(heart_rate) AS max_heart_rate
        FROM vitals_measured GROUP BY ALL""",
    "calories_burned": """
        SELECT person_id, occurred_at AS measured_at, steps, heart_rate, steps * 4 + heart_rate * 8 AS calories
        FROM vitals_measured""",
    "user_settings": SETTINGS,
    "user_card": f"""
        SELECT p.*, s.plan, s.locale FROM (
            SELECT user_id, name, zip FROM profile_changed
            QUALIFY 1 = row_number() OVER (PARTITION BY user_id ORDER BY topic DESC, partition DESC, "offset" DESC)
            AND deleted IS NOT TRUE) p
        LEFT JOIN ({SETTINGS}) s USING (user_id)""",
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
    "airline_names": NAMES,
    "delay_by_carrier_day": f"""
        SELECT f.*, n.name AS carrier_name
        FROM (SELECT carrier, CAST(occurred_at AS DATE) AS day, count(*) AS departures,
                     CAST(sum(delay_minutes) AS DOUBLE) / count(*) AS mean_delay, max(delay_minutes) AS max_delay,
                     var_samp(delay_minutes) AS variance_delay
              FROM flight_departed GROUP BY ALL) f LEFT JOIN ({NAMES}) n USING (carrier)""",
    "word_count": loops.word_count,
    "sessions": loops.sessions,
    "trades": loops.trades,
    "aircraft_turnarounds": loops.aircraft_turnarounds,
    "search_click_through": clicks(
        "search_performed",
        "result_clicked",
        ("session_id", "search_id"),
        "1 HOUR",
        """
        session_id, search_id, status, happened_at, query, clicks, first_clicked_at""",
        "s.query",
    ),
    "ad_click_through": clicks(
        "ad_shown",
        "ad_clicked",
        ("impression_id",),
        "30 MINUTES",
        """
        impression_id, ad_id, status, happened_at, first_clicked_at""",
        "s.ad_id",
        "c.ad_id",
    ),
    "payments_flagged": """
        SELECT card_id, payment_id, attempted_at, amount_cents, country, attempts,
               CASE WHEN attempts < 3 OR countries < 2 THEN 'small_then_large'
                    WHEN amount_cents >= 50000 AND least <= 500 THEN 'both' ELSE 'three_in_a_minute' END AS rule
        FROM (SELECT p.card_id, p.payment_id, p.occurred_at AS attempted_at, p.amount_cents, p.country, p.partition,
                     p."offset", count(*) FILTER (is_near) AS attempts, min(o.amount_cents) AS least,
                     count(DISTINCT o.country) FILTER (is_near) AS countries
              FROM payment_attempted p JOIN (FROM payment_attempted) o ON o.card_id = p.card_id
                  AND o.occurred_at BETWEEN p.occurred_at - INTERVAL 10 MINUTES AND p.occurred_at,
                  LATERAL (SELECT o.occurred_at >= p.occurred_at - INTERVAL 60 SECONDS AS is_near)
              GROUP BY ALL)
        WHERE attempts >= 3 AND countries > 1 OR amount_cents >= 50000 AND least <= 500""",
    "payments_scored": """
        SELECT payment_id, attempted_at, card_id, amount_cents, thousands, is_small, is_large, is_abroad,
               is_electronics, score, score > 0 AS is_flagged, model_version
        FROM (SELECT p.*, p.occurred_at AS attempted_at, m.model_version,
                     p.amount_cents / 100000 AS thousands,
                     CAST(p.amount_cents < 500 AS DOUBLE) AS is_small,
                     CAST(p.amount_cents >= 50000 AS DOUBLE) AS is_large,
                     CAST(p.country NOT IN ('CH', 'DE', 'FR', 'AT') AS DOUBLE) AS is_abroad,
                     CAST(p.category = 'electronics' AS DOUBLE) AS is_electronics,
                     m.intercept + m.weight_thousands * thousands + m.weight_is_small * is_small
                     + m.weight_is_large * is_large + m.weight_is_abroad * is_abroad
                     + m.weight_is_electronics * is_electronics AS score
              FROM payment_attempted p ASOF LEFT JOIN (
                  FROM payments_model_promoted QUALIFY 1 = row_number() OVER (
                      PARTITION BY lsn ORDER BY topic DESC, partition DESC, "offset" DESC)) m ON p.lsn > m.lsn)""",
    "trades_by_colour": loops.trades_by_colour,
    "search_rate_by_hour": rates(
        "search_performed", "result_clicked", ("session_id", "search_id"), "query", "searches", "1 HOUR"
    ),
    "ad_rate_by_hour": rates("ad_shown", "ad_clicked", ("impression_id",), "ad_id", "showings", "30 MINUTES"),
    "page_views_per_zip_day": """
        SELECT zip, CAST(p.occurred_at AS DATE) AS day, count(*) AS page_views, count(DISTINCT p.user_id) AS viewers
        FROM page_viewed p ASOF LEFT JOIN (
            SELECT user_id, occurred_at AS since, CASE WHEN deleted IS NOT TRUE THEN zip END AS zip FROM profile_changed
            QUALIFY 1 = row_number() OVER (
                PARTITION BY user_id, occurred_at ORDER BY topic DESC, partition DESC, "offset" DESC)) c
        ON p.user_id = c.user_id AND p.occurred_at > c.since GROUP BY ALL""",
    "page_views_by_zip": loops.page_views_by_zip,
    "clicks_with_user_name": loops.clicks_with_user_name,
    "departures_with_weather": loops.departures_with_weather,
    "order_state": loops.order_state,
    "bus_speed": buses.bus_speed,
    "late_and_rejected": outcomes.late_and_rejected,
}
"""View -> its answer: SQL over the events' relations, or a program."""


class Oracle:
    """The answers over some records, which are read once.

    records, upto, times: as of `Events`. now: the moment of the question, `$now` in the answers that depend on it.
    """

    def __init__(
        self,
        records: pa.Table | str,
        upto: Mapping[Partition, int] | None = None,
        now: datetime | None = None,
        times: Times | None = None,
    ) -> None:
        self._events = Events(records, upto, times)
        self._now = now

    @property
    def approximate(self) -> Mapping[str, Mapping[str, float]]:
        return APPROXIMATE

    def expected(self, view: str) -> pa.Table:
        """The rows of a view, with the columns that it serves, in no order. Raises KeyError for other views."""
        answer = ANSWERS[view]
        if isinstance(answer, str):
            known = sorted(one for of_topic in verdict.topics().values() for one in of_topic)
            if "every_event" in answer:
                every = " UNION ALL ".join(f"SELECT event_type, occurred_at FROM {one}" for one in known)
                answer = f"WITH every_event AS ({every}) FROM ({answer})"
            types = [one for one in known if re.search(rf"\b{one}\b", answer)]
            now = {"now": self._now.astimezone(UTC).replace(tzinfo=None)} if self._now and "$now" in answer else {}
            return self._events.ask(answer, *types, **now)
        return answer(self._events)


def oracle(*, records: Path, until: Mapping[Partition, int], now: datetime, log: ds.Dataset, cut: int) -> Oracle:
    """As `quality.verification.expected.MakeOracle` says."""
    return Oracle(str(records), until, now, times(log, cut))


def expected(view: str, records: pa.Table | str, upto: Mapping[Partition, int] | None = None) -> pa.Table:
    """One answer; for several over the same records make one `Oracle`."""
    return Oracle(records, upto).expected(view)
