from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of_view="ad_click_through",
    by={"ad_id": "ad_id", "hour": "date_trunc('HOUR', happened_at)"},
    where="status <> 'orphan'",
    measures={"showings": Count(), "clicked": Count(where="status = 'clicked'")},
    derived={"click_rate": "try_divide(clicked, showings)"},
    owner="web",
    description="Per advertisement and hour of its showing: how many showings were clicked within 30 minutes.",
)
