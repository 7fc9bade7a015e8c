from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="person_id",
    rows={
        "measurement": Row(
            of="vitals_measured",
            key="person_id",
            reach="0 seconds",
            columns={
                "measured_at": "occurred_at",
                "steps": "steps",
                "heart_rate": "heart_rate",
                "calories": "steps * 4 + heart_rate * 8",
            },
        )
    },
    owner="leisure",
    description="Row by row: each measurement with the calories (small ones) that it stands for, by a rule of thumb.",
)
