from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of="*",
    by={"event_type": "event_type", "minute": "date_trunc('MINUTE', occurred_at)"},
    measures={"events": Count()},
    owner="platform",
    description="Events per type and minute in which they happened.",
)
