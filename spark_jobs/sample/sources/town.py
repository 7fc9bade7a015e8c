"""What happens in the town: which events, in which shares, and who makes them up.

rate -> event type -> source (market, web, clicks, payments, streets, database)
"""

from spark_jobs.sample.sources import clicks, database, market, payments, streets, web
from spark_jobs.sample.sources.draw import Source

SHARES = {
    "order_placed": 0.2,
    "order_executed": 0.14,
    "page_viewed": 0.2,
    "bus_position_reported": 0.1,
    "sentence_posted": 0.04,
    "vitals_measured": 0.02,
    "lift_ride_taken": 0.036,
    "profile_changed": 0.02,
    "settings_changed": 0.01,
    "stock_received": 0.01,
    "search_performed": 0.05,
    "result_clicked": 0.03,
    "ad_shown": 0.04,
    "ad_clicked": 0.012,
    "payment_attempted": 0.04,
    "payment_disputed": 0.002,
    "order_commanded": 0.04,
    "order_row_changed": 0.01,
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
        "search_performed": clicks.searches,
        "result_clicked": clicks.result_clicks,
        "ad_shown": clicks.showings,
        "ad_clicked": clicks.ad_clicks,
        "payment_attempted": payments.attempts,
        "payment_disputed": payments.disputes,
        "order_commanded": market.commands,
        "order_row_changed": database.changes,
    }
