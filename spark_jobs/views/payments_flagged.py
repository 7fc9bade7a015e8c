from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="card_id",
    rows={
        "payment": Row(
            of="payment_attempted",
            key="card_id",
            reach="10 minutes",
            columns={"payment_id": "payment_id", "amount_cents": "amount_cents", "country": "country"},
        ),
    },
    resolve="""
        WITH seen AS (SELECT *, count(*) OVER minute AS attempts, min(country) OVER minute AS one_country,
            max(country) OVER minute AS other_country, min(amount_cents) OVER recent AS least_cents
            FROM {rows}
            WINDOW minute AS (PARTITION BY key ORDER BY ts RANGE BETWEEN 60000000 PRECEDING AND CURRENT ROW),
                   recent AS (PARTITION BY key ORDER BY ts RANGE BETWEEN {payment_reach} PRECEDING AND CURRENT ROW)),
        judged AS (SELECT *, attempts >= 3 AND one_country <> other_country AS is_burst,
            amount_cents >= 50000 AND least_cents <= 500 AS is_tried FROM seen)
        SELECT key, ts AS opened_at, ts AS closes_at, payment_id, ts AS attempted_at, amount_cents, country, attempts,
            CASE WHEN is_burst AND is_tried THEN 'both' WHEN is_burst THEN 'three_in_a_minute'
                ELSE 'small_then_large' END AS rule
        FROM judged WHERE is_burst OR is_tried""",
    results={
        "payment_id": "STRING",
        "attempted_at": "TIMESTAMP",
        "amount_cents": "BIGINT",
        "country": "STRING",
        "attempts": "BIGINT",
        "rule": "STRING",
    },
    owner="payments",
    description=(
        "Payments that look stolen: the third or a later attempt on a card within 60 seconds in two countries, or 500 "
        "francs and more within ten minutes of 5 francs or less. Attempts in one instant all count for each other."
    ),
)
