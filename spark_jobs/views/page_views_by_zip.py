from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="user_id",
    rows={
        "profile": Row(
            of="profile_changed",
            key="user_id",
            reach=None,
            carried=True,
            columns={"zip": "CASE WHEN NOT deleted THEN zip END"},
        ),
        "page": Row(of="page_viewed", key="user_id", reach="0 seconds", columns={"url": "url"}),
    },
    resolve="""
        WITH numbered AS (SELECT *, count(CASE WHEN kind = 'profile' THEN 1 END)
            OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM {rows}),
        known AS (SELECT *, max(CASE WHEN kind = 'profile' THEN zip END) OVER (PARTITION BY key, number) AS zip_then
            FROM numbered)
        SELECT key, ts AS opened_at, ts AS closes_at, ts AS viewed_at, url, zip_then AS zip
        FROM known WHERE kind = 'page'""",
    results={"viewed_at": "TIMESTAMP", "url": "STRING", "zip": "STRING"},
    owner="web",
    description="Page views with the viewer's ZIP code as of the view; NULL where there was no profile then.",
)
