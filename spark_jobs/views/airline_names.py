from spark_jobs.measures import Last
from spark_jobs.view import Aggregate

view = Aggregate(
    of="airline_changed",
    by={"carrier": "carrier"},
    measures={"name": Last("name")},
    owner="transport",
    description="The current name of each airline; removed airlines are not in it.",
)
