from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of="record_noted",
    by={
        "event_type": "coalesce(noted_type, 'unknown')",
        "hour": "date_trunc('HOUR', occurred_at)",
        "verdict": "verdict",
        "reason": "reason",
    },
    measures={"records": Count()},
    owner="platform",
    description="Records that came late, repeated a fact or were rejected, per type, hour of their arrival and reason.",
)
