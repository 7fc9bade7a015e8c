from spark_jobs.definitions.api import Aggregate, Last

view = Aggregate(
    of="order_row_changed",
    by={"order_id": "order_id"},
    where="op IS NOT NULL",  # a null value has no id, so that a connector's repetition of one would not be recognised
    measures={
        "user_id": Last("user_id"),
        "store_id": Last("store_id"),
        "status": Last("status"),
        "amount_cents": Last("amount_cents"),
        "updated_at": Last("updated_at"),
        "changed_at": Last("occurred_at"),
    },
    owner="commerce",
    description="The database's table of orders as it is now, from its changes; rows that were deleted are not in it.",
)
