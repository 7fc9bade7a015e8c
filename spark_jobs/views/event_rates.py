from spark_jobs.measures import Count
from spark_jobs.view import Aggregate

view = Aggregate(
    of="*",
    by={"event_type": "event_type", "minute": "date_trunc('MINUTE', occurred_at)"},
    measures={"events": Count()},
    owner="platform",
    description="Events per type and minute in which they happened.",
)
