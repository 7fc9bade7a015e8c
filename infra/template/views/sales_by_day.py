from spark_jobs.definitions.api import Aggregate, Count, Sum

view = Aggregate(
    of="sale_made",
    by={"product": "product", "day": "to_date(occurred_at)"},
    measures={"sales": Count(), "pieces": Sum("quantity"), "revenue_cents": Sum("quantity * unit_price_cents")},
    owner="shop",
    description="Sales, pieces and revenue per product and day (UTC).",
)
