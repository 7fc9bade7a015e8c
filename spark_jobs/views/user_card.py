from spark_jobs.definitions.api import Aggregate, Last, Lookup

view = Aggregate(
    of="profile_changed",
    by={"user_id": "user_id"},
    measures={"name": Last("name"), "zip": Last("zip")},
    lookups={
        "plan": Lookup(view="user_settings", key="user_id", column="plan"),
        "locale": Lookup(view="user_settings", key="user_id", column="locale"),
    },
    owner="web",
    description="The current profile of each user, with the current settings; removed users are not in it.",
)
