"""A peer's answers against the producer's ledger, counted by DuckDB.

tables of the peer, as CSV -> DuckDB <- records that were sent

Peers count every record that they can parse: sound ones, their duplicates, and some that a schema refuses. So each key
has at least its sound records and all keys together at most the refused ones more; and where a key has no more than its
sound records, its sums and distinct counts are the same as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.bench.flink import sql

SOUND = """CREATE VIEW sound AS
    SELECT topic, decode(value)::JSON AS json, CAST(json ->> 'occurred_at' AS TIMESTAMP) AS occurred_at
    FROM '{files}' WHERE outcome <> 'rejected' AND value IS NOT NULL"""
REFUSED = "SELECT count(*) FROM '{files}' WHERE outcome = 'rejected' AND topic = ?"
HOUR = "strftime(occurred_at, '%Y-%m-%d %H') AS hour"
STORE = "CAST(json ->> 'store_id' AS BIGINT) AS store_id"
USER = "CAST(json ->> 'user_id' AS BIGINT)"
REVENUE = "sum(CAST(json ->> 'quantity' AS BIGINT) * CAST(json ->> 'unit_price_cents' AS BIGINT)) AS revenue_cents"
# The lower case of a dotted capital I is two characters to Java, one to DuckDB.
WORDS = "string_split_regex(lower(replace(json ->> 'text', '\u0130', 'i\u0307')), '[^a-z0-9]+')"
LARGEST_SENTENCE = 100


@dataclass(frozen=True)
class Expected:
    """The sound records' answer, `counted` by `keys`; `most`: what one refused record may add, if that is known."""

    topic: str
    keys: tuple[str, ...]
    counted: str
    query: str
    most: int | None = 1


EXPECTED = {
    "orders_by_day": Expected(
        "order_placed",
        ("store_id", "day"),
        "orders",
        f"SELECT {STORE}, CAST(occurred_at AS DATE) AS day, count(*) AS orders, {REVENUE} {{sound}} GROUP BY ALL",
    ),
    "orders_by_hour": Expected(
        "order_placed",
        ("store_id", "hour"),
        "orders",
        f"SELECT {STORE}, {HOUR}, count(*) AS orders, {REVENUE}, count(DISTINCT {USER}) AS buyers {{sound}} "
        "GROUP BY ALL",
    ),
    "orders_by_colour": Expected(
        "order_placed",
        ("colour",),
        "orders",
        "SELECT json ->> 'colour' AS colour, count(*) AS orders {sound} GROUP BY ALL",
    ),
    "page_views_per_user_hour": Expected(
        "page_viewed",
        ("user_id", "hour"),
        "page_views",
        f"SELECT {USER} AS user_id, {HOUR}, count(*) AS page_views {{sound}} GROUP BY ALL",
    ),
    "word_count": Expected(
        "sentence_posted",
        ("word",),
        "n",
        f"SELECT word, count(*) AS n FROM (SELECT unnest({WORDS}) AS word {{sound}}) WHERE word <> '' GROUP BY ALL",
        most=LARGEST_SENTENCE,
    ),
    # What counts is a time; a refused record may tell any.
    "bus_latest": Expected(
        "bus_position_reported",
        ("bus_id",),
        "occurred_at",
        "SELECT json ->> 'bus_id' AS bus_id, strftime(max(occurred_at), '%Y-%m-%d %H:%M:%S.%g') AS occurred_at {sound} "
        "GROUP BY ALL",
        most=None,
    ),
} | {
    f"{sql.LANDED_PREFIX}{topic}": Expected(
        topic, ("event_type",), "n", f"SELECT '{topic}' AS event_type, count(*) AS n {{sound}}"
    )
    for topic in sql.READ
}


def check(peer: str, ledger: Path, answers: Mapping[str, str]) -> None:
    """AssertionError with the view, and how far its answers are off.

    answers: view -> what DuckDB selects its rows from.
    """
    files = f"{ledger}/*/[0-9]*.parquet"
    with duckdb.connect() as connection:
        connection.execute(SOUND.format(files=files))
        for name, rows in answers.items():
            connection.execute(f"CREATE VIEW {name} AS FROM {rows}")
        for name, expected in EXPECTED.items():
            [(refused,)] = connection.execute(REFUSED.format(files=files), [expected.topic]).fetchall()
            less, unequal, more = _compared(connection, name, expected)
            assert less == 0, f"{peer}: {name} has {less} keys with less than their sound records"
            assert unequal == 0, f"{peer}: {name} has {unequal} keys with other sums over the same records"
            most = more if expected.most is None else refused * expected.most
            assert more <= most, f"{peer}: {name} has {more} more than the sound records, of {refused} refused ones"


def _compared(connection: duckdb.DuckDBPyConnection, name: str, expected: Expected) -> tuple[int, int, int]:
    """Keys with less than expected, keys with the same count and other sums, and how much more all keys have."""
    query = expected.query.format(sound=f"FROM sound WHERE topic = '{expected.topic}'")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {query}")
    columns = [column for column, *_ in connection.execute("DESCRIBE expected").fetchall()]
    sums = [column for column in columns if column not in (*expected.keys, expected.counted)]
    more = "0" if expected.most is None else f"sum(f.{expected.counted} - coalesce(e.{expected.counted}, 0))"
    differ = " OR ".join(f"f.{column} IS DISTINCT FROM e.{column}" for column in sums) or "false"
    [found] = connection.execute(
        f"SELECT count(*) FILTER (f.{expected.counted} IS NULL OR f.{expected.counted} < e.{expected.counted}),"
        f" count(*) FILTER (f.{expected.counted} = e.{expected.counted} AND ({differ})), coalesce({more}, 0)"
        f" FROM expected AS e FULL JOIN {name} AS f USING ({', '.join(expected.keys)})"
    ).fetchall()
    return found
