"""What happens in the town: which events, in which shares, and who makes them up.

rate -> event type -> source (market, web, streets)
"""

from spark_jobs.feed import market, streets, web
from spark_jobs.feed.draw import Source

SHARES = {
    "order_placed": 0.26,
    "order_executed": 0.18,
    "page_viewed": 0.26,
    "bus_position_reported": 0.13,
    "sentence_posted": 0.05,
    "vitals_measured": 0.04,
    "lift_ride_taken": 0.04,
    "profile_changed": 0.02,
    "settings_changed": 0.01,
    "stock_received": 0.01,
}


def sources(rate: float) -> dict[str, Source]:
    """A fresh town: event type -> source. `rate`: events a second of all types together."""
    return {
        "order_placed": market.orders,
        "order_executed": market.executions,
        "page_viewed": web.Visits(rate * SHARES["page_viewed"]),
        "bus_position_reported": streets.buses,
        "sentence_posted": streets.sentences,
        "vitals_measured": streets.vitals,
        "lift_ride_taken": streets.rides,
        "profile_changed": web.profiles,
        "settings_changed": web.settings,
        "stock_received": market.stock,
    }
