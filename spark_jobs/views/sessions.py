from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="user_id",
    rows={"page": Row(of="page_viewed", key="user_id", reach="30 minutes", columns={"url": "url"})},
    resolve="""
        WITH marked AS (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY key ORDER BY ts, tie) <= {page_reach}
                            THEN 0 ELSE 1 END AS is_first FROM {rows}),
        numbered AS (SELECT *, sum(is_first) OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM marked),
        placed AS (SELECT *, lag(ts) OVER (PARTITION BY key, number ORDER BY ts, tie) IS NULL AS is_entry,
                       lead(ts) OVER (PARTITION BY key, number ORDER BY ts, tie) IS NULL AS is_exit FROM numbered)
        SELECT key, min(ts) AS opened_at, max(ts) + {page_reach} AS closes_at,
            min(ts) AS started_at, max(ts) AS ended_at, count(*) AS pages,
            max(CASE WHEN is_entry THEN url END) AS entry_url, max(CASE WHEN is_exit THEN url END) AS exit_url
        FROM placed GROUP BY key, number""",
    results={
        "started_at": "TIMESTAMP",
        "ended_at": "TIMESTAMP",
        "pages": "BIGINT",
        "entry_url": "STRING",
        "exit_url": "STRING",
    },
    owner="web",
    description="Sessions per user: page views no more than 30 minutes apart.",
)
