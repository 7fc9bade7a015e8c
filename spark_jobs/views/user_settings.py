from spark_jobs.definitions.api import Aggregate, Last

view = Aggregate(
    of="settings_changed",
    by={"user_id": "user_id"},
    measures={"plan": Last("plan"), "locale": Last("locale")},
    owner="web",
    description="The current plan and language of each user; users whose settings were removed are not in it.",
)
