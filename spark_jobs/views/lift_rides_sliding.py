from spark_jobs.definitions.api import Aggregate, Count, Hopping

view = Aggregate(
    of="lift_ride_taken",
    by={"lift_id": "lift_id"},
    window=Hopping(size="10 minutes", every="5 minutes"),
    measures={"rides": Count()},
    owner="leisure",
    description="Rides per lift over 10 minutes, every 5 minutes.",
)
