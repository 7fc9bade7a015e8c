from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="comp_id",
    rows={
        "order": Row(
            of="order_placed", key="comp_id", reach=None, columns={"order_id": "order_id", "colour": "colour"}
        ),
        "execution": Row(
            of="order_executed", key="comp_id", reach=None, columns={"execution_id": "execution_id", "venue": "venue"}
        ),
    },
    # Neighbours of one kind start a new run; within a run the odd ones wait, and the next item decides what of.
    resolve="""
        WITH followed AS (SELECT *, lag(kind) OVER w AS kind_before, lead(kind) OVER w AS next_kind,
            lead(ts) OVER w AS next_ts, lead(order_id) OVER w AS next_order_id, lead(colour) OVER w AS next_colour,
            lead(execution_id) OVER w AS next_execution_id, lead(venue) OVER w AS next_venue
            FROM {rows} WINDOW w AS (PARTITION BY key ORDER BY ts, tie)),
        runs AS (SELECT *, sum(CASE WHEN kind = kind_before THEN 1 ELSE 0 END) OVER (PARTITION BY key ORDER BY ts, tie)
            AS run FROM followed),
        numbered AS (SELECT *, row_number() OVER (PARTITION BY key, run ORDER BY ts, tie) AS place FROM runs),
        waited AS (SELECT *, CASE WHEN next_kind IS NULL THEN 'waiting' WHEN next_kind = kind THEN 'superseded'
            ELSE 'traded' END AS status FROM numbered WHERE place % 2 = 1)
        SELECT key, ts AS opened_at, coalesce(next_ts, {forever}) AS closes_at, status,
            ts AS waited_from, next_ts AS waited_until, coalesce(order_id, next_order_id) AS order_id,
            coalesce(colour, next_colour) AS colour, coalesce(execution_id, next_execution_id) AS execution_id,
            coalesce(venue, next_venue) AS venue
        FROM waited""",
    results={
        "status": "STRING",
        "waited_from": "TIMESTAMP",
        "waited_until": "TIMESTAMP",
        "order_id": "STRING",
        "colour": "STRING",
        "execution_id": "STRING",
        "venue": "STRING",
    },
    owner="commerce",
    description=(
        "Orders paired with executions per company, at most one item waiting at a time: the other kind makes a trade "
        "of it (status traded), the same kind takes its place (superseded), until then it is waiting."
    ),
)
