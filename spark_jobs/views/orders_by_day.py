from spark_jobs.measures import Count, Sum
from spark_jobs.view import Aggregate

view = Aggregate(
    of="order_placed",
    by={"store_id": "store_id", "day": "to_date(occurred_at)"},
    measures={"orders": Count(), "revenue_cents": Sum("quantity * unit_price_cents")},
    owner="commerce",
    description="Orders and revenue per store and day (UTC).",
)
