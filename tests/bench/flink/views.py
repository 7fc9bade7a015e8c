"""The town's views as somebody keeps them with Flink: six aggregates, those of tests/bench/peers.py, or fifteen views.

topics -> SQL -> a table per view, of which a record without a key belongs to none -> tests.bench.flink.peer

Flink has no approximate distinct count over streams, it counts exactly. A sliding window is kept like any other view,
from its first record on; Flink's own windows tell an answer when they close, and leave out what is late.
"""

from tests.bench.flink.sql import INSTANT, READ, Kept, fields

HOUR = "FLOOR(occurred_at TO HOUR)"
MINUTE = "FLOOR(occurred_at TO MINUTE)"


def six() -> dict[str, Kept]:
    """Aggregates alone."""
    return _of_orders() | _of_others()


def fifteen() -> dict[str, Kept]:
    """The six and nine more: sums, newest rows, sliding windows, two types in one, all types in one, row by row."""
    return six() | _of_products() | _of_windows() | _of_people() | {"event_rates": _of_all()}


def _of_orders() -> dict[str, Kept]:
    revenue = "SUM(quantity * unit_price_cents)"
    sound = "store_id IS NOT NULL AND occurred_at IS NOT NULL"
    return {
        "orders_by_day": Kept(
            {"store_id": "BIGINT", "day": "DATE", "orders": "BIGINT", "revenue_cents": "BIGINT"},
            2,
            f"SELECT store_id, CAST(occurred_at AS DATE), COUNT(*), {revenue} FROM order_placed WHERE {sound} "
            "GROUP BY store_id, CAST(occurred_at AS DATE)",
        ),
        "orders_by_hour": Kept(
            {"store_id": "BIGINT", "hour": INSTANT, "orders": "BIGINT", "revenue_cents": "BIGINT", "buyers": "BIGINT"},
            2,
            f"SELECT store_id, {HOUR}, COUNT(*), {revenue}, COUNT(DISTINCT user_id) FROM order_placed WHERE {sound} "
            f"GROUP BY store_id, {HOUR}",
        ),
        "orders_by_colour": Kept(
            {"colour": "STRING", "orders": "BIGINT", "mean_price": "DOUBLE"},
            1,
            "SELECT colour, COUNT(*), AVG(CAST(unit_price_cents AS DOUBLE)) FROM order_placed "
            "WHERE colour IS NOT NULL GROUP BY colour",
        ),
    }


def _of_others() -> dict[str, Kept]:
    words = "SPLIT(REGEXP_REPLACE(LOWER(`text`), '[^a-z0-9]+', ' '), ' ')"
    return {
        "page_views_per_user_hour": Kept(
            {"user_id": "BIGINT", "hour": INSTANT, "page_views": "BIGINT"},
            2,
            f"SELECT user_id, {HOUR}, COUNT(*) FROM page_viewed "
            f"WHERE user_id IS NOT NULL AND occurred_at IS NOT NULL GROUP BY user_id, {HOUR}",
        ),
        "word_count": Kept(
            {"word": "STRING", "n": "BIGINT"},
            1,
            f"SELECT word, COUNT(*) FROM sentence_posted CROSS JOIN UNNEST({words}) AS t (word) "
            "WHERE word <> '' GROUP BY word",
        ),
        "bus_latest": _newest("bus_position_reported", "bus_id", "line", "lat", "lon"),
    }


def _newest(event_type: str, key: str, *columns: str) -> Kept:
    """The newest record of each key; what removes a key is not understood."""
    kinds = fields(event_type)
    chosen = ", ".join([key, "occurred_at", *columns])
    newest = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY occurred_at DESC)"
    return Kept(
        {column: kinds[column] for column in (key, "occurred_at", *columns)},
        1,
        f"SELECT {chosen} FROM (SELECT {chosen}, {newest} AS place FROM {event_type} "
        f"WHERE {key} IS NOT NULL AND occurred_at IS NOT NULL) WHERE place = 1",
    )


def _of_products() -> dict[str, Kept]:
    """The ten of a day that sold most are chosen when `top_sellers` is read, as with ours."""
    moved = "SELECT product_id, quantity, {ordered} AS ordered FROM {topic} WHERE product_id IS NOT NULL"
    both = " UNION ALL ".join(
        moved.format(topic=topic, ordered=ordered)
        for topic, ordered in (("order_placed", "TRUE"), ("stock_received", "FALSE"))
    )
    received, ordered = (f"SUM(CASE WHEN {of} THEN quantity ELSE 0 END)" for of in ("NOT ordered", "ordered"))
    return {
        "top_sellers": Kept(
            {"day": "DATE", "product_id": "BIGINT", "orders": "BIGINT", "units": "BIGINT"},
            2,
            "SELECT CAST(occurred_at AS DATE), product_id, COUNT(*), SUM(quantity) FROM order_placed "
            "WHERE product_id IS NOT NULL AND occurred_at IS NOT NULL GROUP BY CAST(occurred_at AS DATE), product_id",
        ),
        "stock_on_hand": Kept(
            {"product_id": "BIGINT", "records": "BIGINT", "received": "BIGINT", "ordered": "BIGINT"},
            1,
            f"SELECT product_id, COUNT(*), {received}, {ordered} FROM ({both}) GROUP BY product_id",
        ),
    }


def _of_windows() -> dict[str, Kept]:
    """Windows of ten minutes, each minute or each fifth; those of orders from sums by minute, of which ten make one."""
    starts = ", ".join(str(minutes) for minutes in range(10))
    fifth = "TIMESTAMPADD(MINUTE, -ago - CAST(MOD(EXTRACT(MINUTE FROM occurred_at), 5) AS INT), " + MINUTE + ")"
    minutes = (
        f"SELECT colour, {MINUTE} AS occurred_minute, COUNT(*) AS orders, "
        "SUM(CAST(unit_price_cents AS DOUBLE)) AS prices FROM order_placed "
        f"WHERE colour IS NOT NULL AND occurred_at IS NOT NULL GROUP BY colour, {MINUTE}"
    )
    return {
        "average_price_sliding": Kept(
            {"colour": "STRING", "window_start": INSTANT, "orders": "BIGINT", "mean_price": "DOUBLE"},
            2,
            "SELECT colour, TIMESTAMPADD(MINUTE, -ago, occurred_minute), SUM(orders), SUM(prices) / SUM(orders) "
            f"FROM ({minutes}) CROSS JOIN UNNEST(ARRAY[{starts}]) AS t (ago) "
            "GROUP BY colour, TIMESTAMPADD(MINUTE, -ago, occurred_minute)",
        ),
        "lift_rides_sliding": Kept(
            {"lift_id": "STRING", "window_start": INSTANT, "rides": "BIGINT"},
            2,
            f"SELECT lift_id, {fifth}, COUNT(*) FROM lift_ride_taken CROSS JOIN UNNEST(ARRAY[0, 5]) AS t (ago) "
            f"WHERE lift_id IS NOT NULL AND occurred_at IS NOT NULL GROUP BY lift_id, {fifth}",
        ),
    }


def _of_people() -> dict[str, Kept]:
    sound = "person_id IS NOT NULL AND occurred_at IS NOT NULL"
    measured = {"person_id": "BIGINT", "hour": INSTANT, "measurements": "BIGINT", "steps": "BIGINT"}
    return {
        "user_settings": _newest("settings_changed", "user_id", "plan", "locale"),
        "user_card": _newest("profile_changed", "user_id", "name", "zip"),
        "vitals_by_person_hour": Kept(
            measured | {"mean_heart_rate": "DOUBLE", "max_heart_rate": "BIGINT"},
            2,
            f"SELECT person_id, {HOUR}, COUNT(*), SUM(steps), AVG(CAST(heart_rate AS DOUBLE)), MAX(heart_rate) "
            f"FROM vitals_measured WHERE {sound} GROUP BY person_id, {HOUR}",
        ),
        "calories_burned": Kept(
            {"person_id": "BIGINT", "occurred_at": INSTANT, "calories": "BIGINT"},
            0,
            f"SELECT person_id, occurred_at, steps * 4 + heart_rate * 8 FROM vitals_measured WHERE {sound}",
        ),
    }


def _of_all() -> Kept:
    every = " UNION ALL ".join(
        f"SELECT '{topic}' AS event_type, occurred_at FROM {topic} WHERE occurred_at IS NOT NULL" for topic in READ
    )
    return Kept(
        {"event_type": "STRING", "occurred_minute": INSTANT, "events": "BIGINT"},
        2,
        f"SELECT event_type, {MINUTE}, COUNT(*) FROM ({every}) GROUP BY event_type, {MINUTE}",
    )
