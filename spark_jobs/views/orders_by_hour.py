from spark_jobs.definitions.api import Aggregate, ApproxDistinct, Count, Sum

view = Aggregate(
    of="order_placed",
    by={"store_id": "store_id", "hour": "date_trunc('HOUR', occurred_at)"},
    measures={
        "orders": Count(),
        "revenue_cents": Sum("quantity * unit_price_cents"),
        "buyers": ApproxDistinct("user_id"),
    },
    owner="commerce",
    description="Orders, revenue and about how many different buyers per store and hour.",
)
