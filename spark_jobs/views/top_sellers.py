from spark_jobs.definitions.api import Aggregate, Count, Sum, Top

view = Aggregate(
    of="order_placed",
    by={"day": "to_date(occurred_at)", "product_id": "product_id"},
    measures={"units": Sum("quantity"), "orders": Count()},
    top=Top(k=10, by="units", per=("day",)),
    owner="commerce",
    description="The ten products of each day of which most units were sold.",
)
