from spark_jobs.definitions.api import Aggregate, Count, Sum, Trailing

view = Aggregate(
    of="order_placed",
    by={"store_id": "store_id"},
    window=Trailing(size="8 minutes", every="10 seconds"),
    measures={"orders": Count(), "revenue_cents": Sum("quantity * unit_price_cents")},
    owner="commerce",
    description="Orders and revenue per store in the last 8 minutes.",
)
