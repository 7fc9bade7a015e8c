"""The oracle's count of what came late, came again, or was no event.

events, repeated ones as well; records that are no event -> per type, hour of arrival, verdict and reason: how many
"""

from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa

from spark_jobs.sample.oracle.events import INSTANT, Events
from spark_jobs.sample.reference_decoder import verdict

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2261, 12, 31, 23, tzinfo=UTC)  # hours that are kept
ANSWER = pa.schema(
    [
        ("event_type", pa.string()),
        ("hour", INSTANT),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("records", pa.int64()),
    ]
)


def late_and_rejected(events: Events) -> pa.Table:
    """A record that is late as well as repeated counts as repeated."""
    types = sorted(event_type for of_topic in verdict.topics().values() for event_type in of_topic)
    every = " UNION ALL ".join(f"SELECT event_type, timestamp, occurred_at, nth FROM every_{one}" for one in types)
    accepted = events.ask(
        f"""
        SELECT event_type, date_trunc('hour', timestamp) AS hour, verdict, reason, count(*) AS records FROM (
            SELECT event_type, greatest(least(timestamp, TIMESTAMP '{LAST:%Y-%m-%d %H:00}'), TIMESTAMP '1970-01-01')
                   AS timestamp, CASE WHEN nth > 1 THEN 'duplicate' ELSE 'late' END AS verdict,
                   CASE WHEN nth > 1 THEN 'repeated'
                        WHEN timestamp - INTERVAL 1 DAY > occurred_at THEN 'days'
                        WHEN timestamp - INTERVAL 1 HOUR > occurred_at THEN 'hours' ELSE 'minutes' END AS reason
            FROM ({every}) WHERE nth > 1 OR timestamp - INTERVAL 1 MINUTE > occurred_at)
        GROUP BY ALL""",
        *types,
    )
    refused = Counter(
        (event_type or "unknown", _hour(timestamp), "rejected", reason)
        for event_type, timestamp, reason in events.refused()
    )
    rejected = [dict(zip(ANSWER.names, (*key, count), strict=True)) for key, count in refused.items()]
    return pa.concat_tables([accepted.cast(ANSWER), pa.Table.from_pylist(rejected, ANSWER)])


def _hour(at: datetime) -> datetime:
    return max(FIRST, min(LAST, at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)))
