from spark_jobs.definitions.api import Aggregate, Max, Mean, Sum

view = Aggregate(
    of="vitals_measured",
    by={"person_id": "person_id", "hour": "date_trunc('HOUR', occurred_at)"},
    measures={"steps": Sum("steps"), "mean_heart_rate": Mean("heart_rate"), "max_heart_rate": Max("heart_rate")},
    owner="leisure",
    description="Steps, mean and highest pulse per person and hour.",
)
