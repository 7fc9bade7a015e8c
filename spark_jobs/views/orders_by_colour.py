from spark_jobs.definitions.api import Aggregate, Count, Mean

view = Aggregate(
    of="order_placed",
    by={"colour": "colour"},
    measures={
        "orders": Count(),
        "large_orders": Count(where="quantity >= 5"),
        "mean_unit_price_cents": Mean("unit_price_cents"),
    },
    where="colour IN ('red', 'yellow', 'blue')",
    owner="commerce",
    description="All orders so far per colour, with the mean price of one piece.",
)
