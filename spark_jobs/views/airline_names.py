from spark_jobs.definitions.api import Aggregate, Last

view = Aggregate(
    of="airline_changed",
    by={"carrier": "carrier"},
    measures={"name": Last("name")},
    owner="transport",
    description="The current name of each airline; removed airlines are not in it.",
)
