"""What the demo asks: QUESTIONS before and after its batch run, SCORED when a model has been trained."""

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
        "SELECT count(*) AS turnarounds, percentile(ground_minutes, 0.5) AS median_minutes FROM aircraft_turnarounds"
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

SCORED = (
    "SELECT model_version, count(*) AS payments, count_if(is_flagged) AS flagged, round(max(score), 2) AS highest "
    "FROM payments_scored GROUP BY model_version ORDER BY model_version"
)
