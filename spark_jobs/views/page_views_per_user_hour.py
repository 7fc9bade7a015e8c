from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of="page_viewed",
    by={"user_id": "user_id", "hour": "date_trunc('HOUR', occurred_at)"},
    measures={"page_views": Count()},
    owner="web",
    description="Page views per user and hour.",
)
