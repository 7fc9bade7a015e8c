"""What the sound records that were sent say about each table of a peer, as SQL of DuckDB over them.

sound records (topic, json, occurred_at) -> rows of a view -> tests.bench.checked
"""

from dataclasses import dataclass

from tests.bench.flink import sql

SECOND = "'%Y-%m-%d %H:%M:%S.%g'"
HOUR = "strftime(occurred_at, '%Y-%m-%d %H') AS hour"
DAY = "CAST(occurred_at AS DATE) AS day"
# The lower case of a dotted capital I is two characters to Java, one to DuckDB.
WORDS = "string_split_regex(lower(replace(json ->> 'text', '\u0130', 'i\u0307')), '[^a-z0-9]+')"
LARGEST_SENTENCE = 100


@dataclass(frozen=True)
class Expected:
    """The sound records' answer, `counted` by `keys`; `most`: what one refused record may add, if that is known."""

    topics: tuple[str, ...]
    keys: tuple[str, ...]
    counted: str
    query: str
    most: int | None = 1


def _text(name: str) -> str:
    return f"json ->> '{name}' AS {name}"


def _whole(name: str) -> str:
    return f"CAST(json ->> '{name}' AS BIGINT)"


def _keyed(name: str) -> str:
    return f"{_whole(name)} AS {name}"


def _newest(topic: str, key: str, shown: str) -> Expected:
    """What counts is a time; a refused record may tell any."""
    newest = f"SELECT {shown}, strftime(max(occurred_at), {SECOND}) AS occurred_at {{sound}} GROUP BY ALL"
    return Expected((topic,), (key,), "occurred_at", newest, most=None)


def _orders(keys: tuple[str, ...], shown: str, sums: str = "") -> Expected:
    return Expected(
        ("order_placed",), keys, "orders", f"SELECT {shown}, count(*) AS orders{sums} {{sound}} GROUP BY ALL"
    )


REVENUE = f", sum({_whole('quantity')} * {_whole('unit_price_cents')}) AS revenue_cents"
BUYERS = f", count(DISTINCT {_whole('user_id')}) AS buyers"
SIX = {
    "orders_by_day": _orders(("store_id", "day"), f"{_keyed('store_id')}, {DAY}", REVENUE),
    "orders_by_hour": _orders(("store_id", "hour"), f"{_keyed('store_id')}, {HOUR}", REVENUE + BUYERS),
    "orders_by_colour": _orders(("colour",), _text("colour")),
    "page_views_per_user_hour": Expected(
        ("page_viewed",),
        ("user_id", "hour"),
        "page_views",
        f"SELECT {_keyed('user_id')}, {HOUR}, count(*) AS page_views {{sound}} GROUP BY ALL",
    ),
    "word_count": Expected(
        ("sentence_posted",),
        ("word",),
        "n",
        f"SELECT word, count(*) AS n FROM (SELECT unnest({WORDS}) AS word {{sound}}) WHERE word <> '' GROUP BY ALL",
        most=LARGEST_SENTENCE,
    ),
    "bus_latest": _newest("bus_position_reported", "bus_id", _text("bus_id")),
}
NINE_MORE = {
    "top_sellers": _orders(
        ("day", "product_id"), f"{DAY}, {_keyed('product_id')}", f", sum({_whole('quantity')}) AS units"
    ),
    "stock_on_hand": Expected(
        ("order_placed", "stock_received"),
        ("product_id",),
        "records",
        f"SELECT {_keyed('product_id')}, count(*) AS records,"
        f" coalesce(sum({_whole('quantity')}) FILTER (topic = 'stock_received'), 0) AS received,"
        f" coalesce(sum({_whole('quantity')}) FILTER (topic = 'order_placed'), 0) AS ordered {{sound}} GROUP BY ALL",
    ),
    "average_price_sliding": Expected(
        ("order_placed",),
        ("colour", "window_start"),
        "orders",
        f"SELECT colour, strftime(date_trunc('minute', occurred_at) - to_minutes(ago), {SECOND}) AS window_start,"
        " count(*) AS orders, avg(cents) AS mean_price"
        f" FROM (SELECT {_text('colour')}, {_whole('unit_price_cents')} AS cents, occurred_at, unnest(range(10)) AS ago"
        " {sound}) GROUP BY ALL",
        most=10,
    ),
    "lift_rides_sliding": Expected(
        ("lift_ride_taken",),
        ("lift_id", "window_start"),
        "rides",
        f"SELECT lift_id, strftime(time_bucket(INTERVAL 5 MINUTE, occurred_at) - to_minutes(ago), {SECOND})"
        f" AS window_start, count(*) AS rides FROM (SELECT {_text('lift_id')}, occurred_at, unnest([0, 5]) AS ago"
        " {sound}) GROUP BY ALL",
        most=2,
    ),
    "user_settings": _newest("settings_changed", "user_id", _keyed("user_id")),
    "user_card": _newest("profile_changed", "user_id", _keyed("user_id")),
    "vitals_by_person_hour": Expected(
        ("vitals_measured",),
        ("person_id", "hour"),
        "measurements",
        f"SELECT {_keyed('person_id')}, {HOUR}, count(*) AS measurements, sum({_whole('steps')}) AS steps,"
        f" avg({_whole('heart_rate')}) AS mean_heart_rate, max({_whole('heart_rate')}) AS max_heart_rate"
        " {sound} GROUP BY ALL",
    ),
    "calories_burned": Expected(
        ("vitals_measured",),
        ("person_id", "occurred_at", "calories"),
        "n",
        f"SELECT {_keyed('person_id')}, strftime(occurred_at, {SECOND}) AS occurred_at,"
        f" {_whole('steps')} * 4 + {_whole('heart_rate')} * 8 AS calories, count(*) AS n {{sound}} GROUP BY ALL",
    ),
    "event_rates": Expected(
        tuple(sql.READ),
        ("event_type", "occurred_minute"),
        "events",
        f"SELECT topic AS event_type, strftime(date_trunc('minute', occurred_at), {SECOND}) AS occurred_minute,"
        " count(*) AS events {sound} GROUP BY ALL",
    ),
}
LANDED = {
    f"{sql.LANDED_PREFIX}{topic}": Expected(
        (topic,), ("event_type",), "n", f"SELECT '{topic}' AS event_type, count(*) AS n {{sound}}"
    )
    for topic in sql.READ
}
EXPECTED = SIX | NINE_MORE | LANDED
