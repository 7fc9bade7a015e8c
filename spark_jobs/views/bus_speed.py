from spark_jobs.definitions.api import Row, Sequence

PLACE = {"line": "line", "lat": "lat", "lon": "lon"}

view = Sequence(
    key="bus_id",
    # A bus is never quiet. So each report is two rows: itself, over at once, and what the next one is measured from.
    rows={
        "position": Row(of="bus_position_reported", key="bus_id", reach="0 seconds", columns=PLACE),
        "previous": Row(of="bus_position_reported", key="bus_id", reach=None, carried=True, columns=PLACE),
    },
    # Metres on a plane at the bus's latitude, whose cosine comes from its series: within 0.1 % in a town up to 60°.
    # All stops lie north, west, south and east of the town's centre, and buses pass them in this order.
    resolve="""
        WITH numbered AS (SELECT *, count(CASE WHEN kind = 'previous' THEN 1 END)
            OVER (PARTITION BY key ORDER BY ts, tie, kind) AS number, lat * 1.7453292519943295e-2 AS r,
            lat - 4.705e1 AS up, lon - 8.3e0 AS aside FROM {rows}),
        placed AS (SELECT *, max(CASE WHEN kind = 'previous' THEN ts END) OVER o AS ts_before,
            max(CASE WHEN kind = 'previous' THEN lat END) OVER o AS lat_before,
            max(CASE WHEN kind = 'previous' THEN lon END) OVER o AS lon_before, sqrt(up * up + aside * aside) AS far,
            1e0 - r * r / 2e0 + r * r * r * r / 24e0 - r * r * r * r * r * r / 720e0 AS narrow,
            CASE WHEN aside > 0 AND up >= 0 THEN 'north' WHEN up > 0 THEN 'west' WHEN aside < 0 THEN 'south'
                ELSE 'east' END AS stop FROM numbered WINDOW o AS (PARTITION BY key, number)),
        moved AS (SELECT *, ts - ts_before AS micros, 1.1132e5 * (lat - lat_before) AS north_m,
            1.1132e5 * narrow * (lon - lon_before) AS east_m,
            1.1132e5 * (CASE stop WHEN 'north' THEN far WHEN 'south' THEN -far ELSE 0e0 END - up) AS up_to_stop,
            1.1132e5 * narrow * (CASE stop WHEN 'east' THEN far WHEN 'west' THEN -far ELSE 0e0 END - aside)
                AS aside_to_stop FROM placed WHERE kind = 'position'),
        driven AS (SELECT *, sqrt(north_m * north_m + east_m * east_m) AS metres,
            sqrt(up_to_stop * up_to_stop + aside_to_stop * aside_to_stop) AS to_stop
            FROM moved)
        SELECT key, ts AS opened_at, ts AS closes_at, line, ts AS reported_at, CAST(floor(metres + 5e-1) AS BIGINT)
            AS metres, CASE WHEN micros BETWEEN 1 AND 300000000 THEN metres * 3.6e6 / micros END AS speed_kmh,
            stop AS next_stop, CASE WHEN micros BETWEEN 1 AND 300000000 AND metres >= 1e0 AND to_stop < 1e6
                THEN ts + CAST(floor(to_stop / metres * micros) AS BIGINT) END AS arrives_at
        FROM driven""",
    results={
        "line": "STRING",
        "reported_at": "TIMESTAMP",
        "metres": "BIGINT",
        "speed_kmh": "DOUBLE",
        "next_stop": "STRING",
        "arrives_at": "TIMESTAMP",
    },
    owner="transport",
    description=(
        "Per report of a bus: metres since the report before it; where that was at most five minutes before, the speed "
        "and when the bus will be at the next stop, if it goes there straight."
    ),
)
