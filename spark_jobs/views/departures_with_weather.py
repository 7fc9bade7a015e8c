from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="origin",
    rows={
        "weather": Row(
            of="weather_observed",
            key="origin",
            reach=None,
            carried=True,
            columns={"temp_f": "temp_f", "wind_mph": "wind_mph", "visibility_miles": "visibility_miles"},
        ),
        "departure": Row(
            of="flight_departed",
            key="origin",
            reach="0 seconds",
            columns={"flight_id": "flight_id", "delay_minutes": "delay_minutes"},
        ),
    },
    # What was observed more than two hours before is not told.
    resolve="""
        WITH numbered AS (SELECT *, count(CASE WHEN kind = 'weather' THEN 1 END)
            OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM {rows}),
        known AS (SELECT key, kind, ts, flight_id, delay_minutes, max(temp_f) OVER o AS temp, max(wind_mph) OVER o
            AS wind, max(visibility_miles) OVER o AS visibility, max(CASE WHEN kind = 'weather' THEN ts END) OVER o
            AS seen FROM numbered WINDOW o AS (PARTITION BY key, number))
        SELECT key, ts AS opened_at, ts AS closes_at, flight_id, ts AS departed_at, delay_minutes,
            CASE WHEN ts - seen <= 7200000000 THEN seen END AS observed_at,
            CASE WHEN ts - seen <= 7200000000 THEN temp END AS temp_f,
            CASE WHEN ts - seen <= 7200000000 THEN wind END AS wind_mph,
            CASE WHEN ts - seen <= 7200000000 THEN visibility END AS visibility_miles
        FROM known WHERE kind = 'departure'""",
    results={
        "flight_id": "STRING",
        "departed_at": "TIMESTAMP",
        "delay_minutes": "BIGINT",
        "observed_at": "TIMESTAMP",
        "temp_f": "DOUBLE",
        "wind_mph": "DOUBLE",
        "visibility_miles": "DOUBLE",
    },
    owner="transport",
    description="Departures with the last weather observed at their airport within the two hours before.",
)
