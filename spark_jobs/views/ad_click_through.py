from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="impression_id",  # an ad is never quiet; each of its showings is, after half an hour
    rows={
        "shown": Row(of="ad_shown", key="impression_id", reach="30 minutes", columns={"ad_id": "ad_id"}),
        "click": Row(of="ad_clicked", key="impression_id", reach="0 seconds", columns={"ad_id": "ad_id"}),
    },
    resolve="""
        WITH met AS (SELECT *,
            count(CASE WHEN kind = 'click' THEN 1 END) OVER ahead AS clicks,
            min(CASE WHEN kind = 'click' THEN ts END) OVER ahead AS first_click,
            count(CASE WHEN kind = 'shown' THEN 1 END) OVER back AS showings
            FROM {rows}
            WINDOW ahead AS (PARTITION BY key ORDER BY ts RANGE BETWEEN CURRENT ROW AND {shown_reach} FOLLOWING),
                   back AS (PARTITION BY key ORDER BY ts RANGE BETWEEN {shown_reach} PRECEDING AND CURRENT ROW))
        SELECT key, ts AS opened_at, CASE WHEN kind = 'shown' THEN ts + {shown_reach} ELSE ts END AS closes_at, ad_id,
            CASE WHEN kind = 'click' THEN 'orphan' WHEN clicks > 0 THEN 'clicked' ELSE 'not_clicked' END AS status,
            ts AS happened_at, CASE WHEN kind = 'shown' THEN first_click END AS first_clicked_at
        FROM met WHERE kind = 'shown' OR showings = 0""",
    results={
        "ad_id": "STRING",
        "status": "STRING",
        "happened_at": "TIMESTAMP",
        "first_clicked_at": "TIMESTAMP",
    },
    owner="web",
    description=(
        "Per showing of an advertisement: was it clicked within 30 minutes? A click without a showing in the half hour "
        "before it is an orphan, until its showing comes."
    ),
)
