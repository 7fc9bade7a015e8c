from spark_jobs.definitions.api import Aggregate, Count, CountDistinct

view = Aggregate(
    of_view="page_views_by_zip",
    by={"zip": "zip", "day": "to_date(viewed_at)"},
    measures={"page_views": Count(), "viewers": CountDistinct("user_id")},
    owner="web",
    description="Page views and viewers per day and ZIP code, each by where the viewer lived when the page was viewed.",
)
