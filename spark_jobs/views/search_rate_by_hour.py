from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of_view="search_click_through",
    by={"query": "query", "hour": "date_trunc('HOUR', happened_at)"},
    where="status <> 'orphan'",
    measures={"searches": Count(), "clicked": Count(where="status = 'clicked'")},
    derived={"click_rate": "try_divide(clicked, searches)"},
    owner="web",
    description="Per query and hour of the search: how many searches led to a click within an hour.",
)
