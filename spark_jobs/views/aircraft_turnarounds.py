from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="tailnum",
    rows={
        "arrival": Row(
            of="flight_arrived",
            key="tailnum",
            reach=None,
            where="tailnum IS NOT NULL",
            columns={"arrived_with": "flight_id", "airport": "dest"},
        ),
        "departure": Row(
            of="flight_departed",
            key="tailnum",
            reach="0 seconds",
            where="tailnum IS NOT NULL",
            columns={"departed_with": "flight_id", "next_airport": "origin"},
        ),
    },
    resolve="""
        WITH followed AS (SELECT *, lead(ts) OVER w AS next_ts, lead(departed_with) OVER w AS next_flight,
            lead(next_airport) OVER w AS left_from FROM {rows} WINDOW w AS (PARTITION BY key ORDER BY ts, tie))
        SELECT key, ts AS opened_at, coalesce(next_ts, {forever}) AS closes_at, airport, arrived_with,
            ts AS arrived_at, left_from AS next_airport, next_flight AS departed_with,
            CASE WHEN next_flight IS NOT NULL THEN next_ts END AS departed_at,
            CASE WHEN next_flight IS NOT NULL THEN CAST(floor((next_ts - ts) / 60e6) AS BIGINT) END
                AS ground_minutes
        FROM followed WHERE kind = 'arrival'""",
    results={
        "airport": "STRING",
        "arrived_with": "STRING",
        "arrived_at": "TIMESTAMP",
        "next_airport": "STRING",
        "departed_with": "STRING",
        "departed_at": "TIMESTAMP",
        "ground_minutes": "BIGINT",
    },
    hide="departed_at IS NULL",
    owner="transport",
    description="Per aircraft: each arrival followed by a departure, and the whole minutes between the two.",
)
