from spark_jobs.definitions.api import Aggregate, Sum

AGE = "timestampdiff(MINUTE, minute, asked_at)"  # 0 is the current minute, which is not over

view = Aggregate(
    of_view="event_rates",
    by={"event_type": "event_type"},
    where=f"{AGE} BETWEEN 1 AND 61",
    measures={
        "events": Sum("events", where=f"{AGE} = 1"),
        "events_before": Sum("events", where=f"{AGE} > 1"),
        "squares_before": Sum("try_multiply(events, events)", where=f"{AGE} > 1"),
    },
    # Sum of squares less square of the sum in integers, for the variance must not be a little less than nothing.
    derived={
        "z_score": """try_divide(coalesce(events, 0) - coalesce(events_before, 0) / 60,
            sqrt((60 * coalesce(squares_before, 0)
                  - coalesce(events_before, 0) * coalesce(events_before, 0)) / (60 * 59)))"""
    },
    owner="platform",
    description=(
        "Per event type the last whole minute against the 60 before it: by how many of their standard deviations it "
        "differs from their mean. Minutes without events count as well."
    ),
)
