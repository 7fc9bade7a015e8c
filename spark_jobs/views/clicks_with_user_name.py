from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="user_id",
    rows={
        "profile": Row(
            of="profile_changed",
            key="user_id",
            reach=None,
            carried=True,
            columns={"name": "CASE WHEN NOT deleted THEN name END"},
        ),
        "click": Row(
            of="ad_clicked",
            key="user_id",
            reach="0 seconds",
            columns={"impression_id": "impression_id", "ad_id": "ad_id"},
        ),
    },
    resolve="""
        WITH numbered AS (SELECT *, count(CASE WHEN kind = 'profile' THEN 1 END)
            OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM {rows}),
        known AS (SELECT *, max(CASE WHEN kind = 'profile' THEN name END) OVER (PARTITION BY key, number) AS name_then
            FROM numbered)
        SELECT key, ts AS opened_at, ts AS closes_at, ts AS clicked_at, ad_id, impression_id, name_then AS user_name
        FROM known WHERE kind = 'click'""",
    results={"clicked_at": "TIMESTAMP", "ad_id": "STRING", "impression_id": "STRING", "user_name": "STRING"},
    owner="web",
    description="Clicks on advertisements with the user's name as of the click; NULL where there was no profile then.",
)
