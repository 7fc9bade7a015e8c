from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="order_id",
    rows={
        "command": Row(
            of="order_commanded",
            key="order_id",
            reach=None,
            columns={"command_id": "command_id", "action": "action"},
        ),
        "fact": Row(of="order_placed", key="order_id", reach=None, columns={"action": "'placed'"}),
    },
    # The first `place` or `placed` opens an order, the first `cancel` after it ends it. A fact is never refused.
    resolve="""
        WITH opened AS (SELECT *, count(CASE WHEN action IN ('place', 'placed') THEN 1 END) OVER before AS places
            FROM {rows} WINDOW before AS (PARTITION BY key ORDER BY ts, tie
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
        ended AS (SELECT *, count(CASE WHEN action = 'cancel' AND places > 0 THEN 1 END) OVER before AS cancels
            FROM opened WINDOW before AS (PARTITION BY key ORDER BY ts, tie
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
        judged AS (SELECT *, CASE WHEN kind = 'fact' THEN NULL WHEN action = 'place' AND places > 0 THEN 'placed before'
            WHEN action <> 'place' AND places = 0 THEN 'not placed' WHEN cancels > 0 THEN 'cancelled before' END
            AS refusal FROM ended)
        SELECT key, min(ts) AS opened_at, {forever} AS closes_at, 'state' AS entry,
            CASE WHEN count(CASE WHEN action = 'cancel' THEN 1 END) > 0 THEN 'cancelled' ELSE 'open' END AS state,
            min(ts) AS since, count(CASE WHEN action = 'change' THEN 1 END) AS changes,
            CAST(NULL AS STRING) AS command_id, CAST(NULL AS STRING) AS reason
        FROM judged WHERE refusal IS NULL GROUP BY key
        UNION ALL
        SELECT key, ts, ts, 'refused', CASE WHEN places = 0 THEN 'none' WHEN cancels > 0 THEN 'cancelled' ELSE 'open'
            END, ts, 0, command_id, refusal
        FROM judged WHERE refusal IS NOT NULL""",
    results={
        "entry": "STRING",
        "state": "STRING",
        "since": "TIMESTAMP",
        "changes": "BIGINT",
        "command_id": "STRING",
        "reason": "STRING",
    },
    owner="commerce",
    description=(
        "Each order's state (entry state), folded from its commands and facts, and the commands that were refused "
        "(entry refused) with the state that they met and the reason."
    ),
)
