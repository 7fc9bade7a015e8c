from spark_jobs.definitions.api import Aggregate, Count, Hopping, Mean

view = Aggregate(
    of="order_placed",
    by={"colour": "colour"},
    window=Hopping(size="10 minutes", every="1 minute"),
    measures={"orders": Count(), "mean_unit_price_cents": Mean("unit_price_cents")},
    owner="commerce",
    description="Orders and average unit price per colour over 10 minutes, every minute.",
)
