from spark_jobs.definitions.api import Aggregate, Sum

view = Aggregate(
    of=("stock_received", "order_placed"),
    by={"product_id": "product_id"},
    measures={
        "received": Sum("CASE WHEN event_type = 'stock_received' THEN quantity ELSE 0 END"),
        "ordered": Sum("CASE WHEN event_type = 'order_placed' THEN quantity ELSE 0 END"),
    },
    derived={"on_hand": "received - ordered"},
    owner="commerce",
    description="Pieces of each product: received, ordered, and what is left; below zero where more was ordered.",
)
