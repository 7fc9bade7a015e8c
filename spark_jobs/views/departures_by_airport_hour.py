from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of=("flight_departed", "flight_cancelled"),
    by={"origin": "origin", "hour": "date_trunc('HOUR', occurred_at)"},
    measures={
        "departures": Count(where="event_type = 'flight_departed'"),
        "cancellations": Count(where="event_type = 'flight_cancelled'"),
    },
    owner="transport",
    description="Departures per airport and hour of leaving; cancelled flights count in their scheduled hour.",
)
