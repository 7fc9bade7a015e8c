from spark_jobs.definitions.api import Aggregate, Last

view = Aggregate(
    of="bus_position_reported",
    by={"bus_id": "bus_id"},
    measures={"line": Last("line"), "lat": Last("lat"), "lon": Last("lon"), "reported_at": Last("occurred_at")},
    owner="transport",
    description="Where each bus was when it last reported, by the time of the report.",
)
