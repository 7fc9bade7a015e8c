from spark_jobs.definitions.api import Aggregate, Count, Lookup, Max, Mean, Variance

view = Aggregate(
    of="flight_departed",
    by={"carrier": "carrier", "day": "to_date(occurred_at)"},
    measures={
        "departures": Count(),
        "mean_delay": Mean("delay_minutes"),
        "max_delay": Max("delay_minutes"),
        "variance_delay": Variance("delay_minutes"),
    },
    lookups={"carrier_name": Lookup(view="airline_names", key="carrier", column="name")},
    owner="transport",
    description="Departure delay in minutes per airline and day of leaving (UTC), with the airline's current name.",
)
