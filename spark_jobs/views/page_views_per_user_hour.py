from spark_jobs.measures import Count
from spark_jobs.view import Aggregate

view = Aggregate(
    of="page_viewed",
    by={"user_id": "user_id", "hour": "date_trunc('HOUR', occurred_at)"},
    measures={"page_views": Count()},
    owner="web",
    description="Page views per user and hour.",
)
