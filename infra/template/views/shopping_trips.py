from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="customer_id",
    rows={
        "sale": Row(of="sale_made", key="customer_id", reach="1 hour", columns={"cents": "quantity * unit_price_cents"})
    },
    resolve="""
        WITH marked AS (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY key ORDER BY ts, tie) <= {sale_reach}
                            THEN 0 ELSE 1 END AS is_first FROM {rows}),
        numbered AS (SELECT *, sum(is_first) OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM marked)
        SELECT key, min(ts) AS opened_at, max(ts) + {sale_reach} AS closes_at,
            min(ts) AS began_at, max(ts) AS ended_at, count(*) AS sales, sum(cents) AS spent_cents
        FROM numbered GROUP BY key, number""",
    results={"began_at": "TIMESTAMP", "ended_at": "TIMESTAMP", "sales": "BIGINT", "spent_cents": "BIGINT"},
    owner="shop",
    description="Shopping trips per customer: sales no more than an hour apart.",
)
