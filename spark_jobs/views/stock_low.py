from spark_jobs.definitions.api import Aggregate, Sum

view = Aggregate(
    of=("stock_received", "order_placed"),
    by={"product_id": "product_id"},
    measures={
        "received": Sum("CASE WHEN event_type = 'stock_received' THEN quantity ELSE 0 END"),
        "ordered": Sum("CASE WHEN event_type = 'order_placed' THEN quantity ELSE 0 END"),
    },
    derived={"on_hand": "received - ordered"},
    having="on_hand < 100",
    owner="commerce",
    description="An alert for each product of which fewer than 100 pieces are left.",
)
