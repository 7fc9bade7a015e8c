"""A peer's answers against the producer's ledger, counted by DuckDB.

tables of the peer, as CSV -> DuckDB <- records that were sent

Peers count every record that they can parse: sound ones, their duplicates, and some that a schema refuses. So each key
has at least its sound records and all keys together at most the refused ones more; and where a key has no more than its
sound records, its sums and distinct counts are the same as well.
"""

from collections.abc import Mapping
from pathlib import Path

import duckdb

from tests.bench.expected import EXPECTED, Expected

SOUND = """CREATE VIEW sound AS
    SELECT topic, decode(value)::JSON AS json, CAST(json ->> 'occurred_at' AS TIMESTAMP) AS occurred_at
    FROM '{files}' WHERE outcome <> 'rejected' AND value IS NOT NULL"""
REFUSED = "SELECT count(*) FROM '{files}' WHERE outcome = 'rejected' AND list_contains(?, topic)"


def check(peer: str, ledger: Path, answers: Mapping[str, str]) -> None:
    """AssertionError with the view, and how far its answers are off.

    answers: view -> what DuckDB selects its rows from.
    """
    files = f"{ledger}/*/[0-9]*.parquet"
    with duckdb.connect() as connection:
        connection.execute(SOUND.format(files=files))
        for name, rows in answers.items():
            connection.execute(f"CREATE VIEW {name} AS FROM {rows}")
        for name in answers:
            expected = EXPECTED[name]
            [(refused,)] = connection.execute(REFUSED.format(files=files), [expected.topics]).fetchall()
            less, unequal, more = _compared(connection, name, expected)
            assert less == 0, f"{peer}: {name} has {less} keys with less than their sound records"
            assert unequal == 0, f"{peer}: {name} has {unequal} keys with other sums over the same records"
            most = more if expected.most is None else refused * expected.most
            assert more <= most, f"{peer}: {name} has {more} more than the sound records, of {refused} refused ones"


def _compared(connection: duckdb.DuckDBPyConnection, name: str, expected: Expected) -> tuple[int, int, int]:
    """Keys with less than expected, keys with the same count and other sums, and how much more all keys have."""
    query = expected.query.format(sound=f"FROM sound WHERE list_contains({list(expected.topics)}, topic)")
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
