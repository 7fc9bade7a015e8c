from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="session_id",
    rows={
        "search": Row(
            of="search_performed",
            key="session_id",
            reach="1 hour",
            columns={"search_id": "search_id", "query": "query"},
        ),
        "click": Row(of="result_clicked", key="session_id", reach="0 seconds", columns={"search_id": "search_id"}),
    },
    # Both ways round without a join: a search looks an hour ahead for its clicks, a click an hour back for its search.
    resolve="""
        WITH met AS (SELECT *,
            count(CASE WHEN kind = 'click' THEN 1 END) OVER ahead AS clicks,
            min(CASE WHEN kind = 'click' THEN ts END) OVER ahead AS first_click,
            count(CASE WHEN kind = 'search' THEN 1 END) OVER back AS searches
            FROM {rows}
            WINDOW ahead AS (PARTITION BY key, search_id ORDER BY ts
                             RANGE BETWEEN CURRENT ROW AND {search_reach} FOLLOWING),
                   back AS (PARTITION BY key, search_id ORDER BY ts
                            RANGE BETWEEN {search_reach} PRECEDING AND CURRENT ROW))
        SELECT key, ts AS opened_at, CASE WHEN kind = 'search' THEN ts + {search_reach} ELSE ts END AS closes_at,
            search_id, CASE WHEN kind = 'click' THEN 'orphan' WHEN clicks > 0 THEN 'clicked' ELSE 'not_clicked' END
            AS status, ts AS happened_at, query, CASE WHEN kind = 'search' THEN clicks ELSE 1 END AS clicks,
            CASE WHEN kind = 'search' THEN first_click END AS first_clicked_at
        FROM met WHERE kind = 'search' OR searches = 0""",
    results={
        "search_id": "STRING",
        "status": "STRING",
        "happened_at": "TIMESTAMP",
        "query": "STRING",
        "clicks": "BIGINT",
        "first_clicked_at": "TIMESTAMP",
    },
    owner="web",
    description=(
        "Per search: was a result clicked within an hour, in the same session? A click without a search in the hour "
        "before it is an orphan, until its search comes."
    ),
)
