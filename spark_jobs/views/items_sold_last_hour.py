from spark_jobs.definitions.api import Aggregate, Sum, Trailing

view = Aggregate(
    of="order_placed",
    by={"product_id": "product_id"},
    window=Trailing(size="1 hour", every="1 minute"),
    measures={"units": Sum("quantity")},
    owner="commerce",
    description="Units sold per product in the last hour.",
)
