"""What the Thrift server's protocol makes of values is read back before it is compared."""

from datetime import UTC, date, datetime

import pyarrow as pa

from spark_jobs.publication import served_sample

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("words", pa.list_(pa.string())),
        ("word", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("count", pa.int64()),
        ("rate", pa.float64()),
        ("is_red", pa.bool_()),
    ]
)


def test_i20_rows_of_the_server_get_the_types_of_the_files() -> None:
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    rows = [("2026-01-05", '["a", "2026"]', "2026-01-05", at, 3, 0.5, True), (None,) * len(SCHEMA)]
    read = served_sample._table(SCHEMA.names, rows, SCHEMA).to_pylist()
    assert [*read[0].values()] == [date(2026, 1, 5), ["a", "2026"], "2026-01-05", at, 3, 0.5, True]
    assert not any(value is not None for value in read[1].values())
