from spark_jobs.definitions.api import Aggregate, Count, Max

view = Aggregate(
    of_view="trades",
    by={"colour": "colour", "venue": "venue"},
    where="status = 'traded'",
    measures={"trades": Count(), "last_traded_at": Max("waited_until")},
    owner="commerce",
    description="Trades per colour of the order and venue of the execution.",
)
