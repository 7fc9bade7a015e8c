from spark_jobs.definitions.api import Aggregate, Count, Sum

view = Aggregate(
    of="order_placed",
    by={"store_id": "store_id", "day": "to_date(occurred_at)"},
    measures={"orders": Count(), "revenue_cents": Sum("quantity * unit_price_cents")},
    owner="commerce",
    description="Orders and revenue per store and day (UTC).",
)
