"""The events that count, for the oracle: read from records, the first of each event id.

records -> listed ones at their producer's word (pyarrow's JSON reader), others by `reference_decoder` -> tables by type

Shares no code with decode, dedupe or the views. Inside, instants are timestamps without zone, in UTC: DuckDB needs an
extension for zones.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache, cached_property

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.json

from spark_jobs.sample.reference_decoder import verdict
from spark_jobs.sample.reference_decoder.json_text import NoEvent
from spark_jobs.sample.reference_decoder.schema_times import Times

Partition = tuple[str, int]

INSTANT = pa.timestamp("us", tz="UTC")
INSIDE = pa.timestamp("us")
COORDINATES = [("lsn", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
CARRIED = [*COORDINATES, ("timestamp", INSTANT)]  # columns that an event takes over from its record
KINDS = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
LINES = 200_000  # records that are read at a time

NUMBERED = """
    CREATE TEMP TABLE every_{0} AS SELECT *, CASE WHEN event_id IS NULL THEN 1
        ELSE row_number() OVER (PARTITION BY event_id ORDER BY lsn, topic, partition, "offset") END AS nth FROM all_{0}
"""
REVISED = '(topic, partition, "offset") IN (FROM revised)'
FIRST = "CREATE TEMP VIEW {0} AS SELECT * EXCLUDE (nth) FROM every_{0} WHERE nth = 1"


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all, whose relations are temporary: to open one takes as long as to answer over few records."""
    return duckdb.connect()


class Events:
    """A DuckDB connection in which each event type that was asked for is a view of its first events.

    `every_<type>` has the repeated ones as well, as the `nth` of their event id.
    records: a table, or a glob of Parquet files, with topic, partition, offset, timestamp, key, value; and, where
    known, lsn (else 0), headers, and outcome and reason as in the producer ledger (null: nobody wrote down what it is).
    upto: per (topic, partition) the first offset that no longer counts; others do not count; None: everything counts.
    times: from which lsn on which schemas are in force; None: always all of them.
    """

    def __init__(
        self, records: pa.Table | str, upto: Mapping[Partition, int] | None = None, times: Times | None = None
    ) -> None:
        self._con = _database().cursor()
        self._times = times or Times()
        if isinstance(records, pa.Table):
            self._con.register("given", records)
        else:
            self._con.execute(f"CREATE TEMP VIEW given AS SELECT * FROM read_parquet('{records}')")
        self._count(upto)
        self._ready: set[str] = set()

    def ask(self, query: str, *event_types: str, **parameters: object) -> pa.Table:
        """The answer to a query over the tables of these event types. Instants in `parameters`: as inside."""
        for event_type in event_types:
            if event_type not in self._ready:
                self._con.register(f"all_{event_type}", self._all(event_type))
                self._con.execute(NUMBERED.format(event_type))
                self._con.execute(FIRST.format(event_type))
                self._con.unregister(f"all_{event_type}")
                self._ready.add(event_type)
        answer = self._con.sql(query, params=parameters or None).to_arrow_table()
        kinds = [(f.name, INSTANT if f.type == INSIDE else f.type) for f in answer.schema]
        return answer.cast(pa.schema(kinds))

    def refused(self) -> Iterator[tuple[str | None, datetime, str]]:
        """Event type where it is known, Kafka's timestamp and reason of each record that is no event.

        The reason of a listed record is its producer's word, its event type never is.
        """
        found = self._con.sql("SELECT * FROM counted WHERE outcome = 'rejected' OR outcome IS NULL")
        for record in (one for batch in found.to_arrow_reader(LINES) for one in batch.to_pylist()):
            try:
                self._times.judged(record)
            except NoEvent as refused:
                yield refused.event_type, record["timestamp"], record["reason"] or refused.reason

    def _count(self, upto: Mapping[Partition, int] | None) -> None:
        """Makes the relation `counted`: the records up to the bounds, with every column that is used."""
        names = {row[0] for row in self._con.execute("DESCRIBE given").fetchall()}
        lacking = {"lsn": "0", "headers": "NULL", "outcome": "NULL::VARCHAR", "reason": "NULL::VARCHAR"}
        columns = "".join(f", {value} AS {name}" for name, value in lacking.items() if name not in names)
        rows = [{"t": topic, "p": partition, "until": until} for (topic, partition), until in (upto or {}).items()]
        kinds = pa.schema([("t", pa.string()), ("p", pa.int32()), ("until", pa.int64())])
        self._con.register("bounds", pa.Table.from_pylist(rows, kinds))
        within = "" if upto is None else 'JOIN bounds ON topic = t AND partition = p AND "offset" < until'
        # Kafka takes any timestamp; Python knows the years 1 to 9999.
        known = "greatest(least(timestamp, make_timestamptz(253370764800000000)), make_timestamptz(-62135510400000000))"
        every = f"given.* REPLACE ({known} AS timestamp){columns}"
        self._con.execute(f"CREATE TEMP VIEW sent AS SELECT {every} FROM given {within}")
        self._find_revised()
        word = ", ".join(f"CASE WHEN {REVISED} THEN NULL ELSE {name} END AS {name}" for name in ("outcome", "reason"))
        self._con.execute(f"CREATE TEMP VIEW counted AS SELECT * REPLACE ({word}) FROM sent")

    def _find_revised(self) -> None:
        """Makes the table `revised`: the places of records of which the log says more than their producer knew."""
        said = self._times.said
        places = [dict(zip(("topic", "partition", "offset"), one.place, strict=True)) for one in said]
        self._con.register("places", pa.Table.from_pylist(places, pa.schema(COORDINATES[1:])))
        ids = [one.event[1] for one in said if one.event is not None and one.event[1] is not None]
        self._con.register("ids", pa.table({"id": pa.array(ids, pa.string())}))
        named = "EXISTS (FROM ids WHERE contains(CAST(value AS VARCHAR), id))" if ids else "false"
        self._con.execute(
            f'CREATE TEMP TABLE revised AS SELECT topic, partition, "offset" FROM sent WHERE {named} '
            'UNION SELECT topic, partition, "offset" FROM places'
        )

    def _all(self, event_type: str) -> pa.Table:
        """Every event of the type, repeated ones as well."""
        topic = next(topic for topic, types in verdict.topics().items() if event_type in types)
        if topic not in self._topics and not self._is_revised:
            return _schema(event_type).empty_table()
        known = "outcome IN ('fact', 'duplicate')"
        is_line = "false" if verdict.is_nested(event_type) else "value IS NOT NULL"
        listed = self._read(topic, event_type, f"{known} AND {is_line}", _listed)
        strange = self._read(topic, event_type, f"outcome IS NULL OR {known} AND NOT ({is_line})", self._strange)
        return pa.concat_tables([_schema(event_type).empty_table(), *listed, *strange])

    @cached_property
    def _topics(self) -> set[str]:
        """Those that have records at all."""
        return {topic for (topic,) in self._con.execute("SELECT DISTINCT topic FROM counted").fetchall()}

    @cached_property
    def _is_revised(self) -> bool:
        return bool(self._con.execute("SELECT EXISTS (FROM revised)").fetchall()[0][0])

    def _read(
        self, topic: str, event_type: str, which: str, reading: Callable[[pa.Table, str], pa.Table]
    ) -> list[pa.Table]:
        found = self._con.sql(f"SELECT * FROM counted WHERE (topic = ? OR {REVISED}) AND ({which})", params=[topic])
        batches = found.to_arrow_reader(LINES)
        return [reading(pa.Table.from_batches([batch]), event_type) for batch in batches if batch.num_rows]

    def _strange(self, records: pa.Table, event_type: str) -> pa.Table:
        """Records of which nobody said what they are, and those that have no value to say it."""
        events = []
        for record in records.to_pylist():
            event = self._times.read(record)
            if event is not None and event["event_type"] == event_type:
                events.append({**{name: record[name] for name, _ in CARRIED}, **event})
        kinds = pa.schema([*CARRIED, *_fields(event_type).items()])
        return pa.Table.from_pylist(events, kinds).cast(_schema(event_type))


def _fields(event_type: str) -> dict[str, pa.DataType]:
    kinds = {}
    for name, field in verdict.properties(event_type).items():
        of = field.get("type", "string")
        scalar = of if isinstance(of, str) else next(kind for kind in of if kind != "null")
        kinds[name] = INSTANT if "format" in field else KINDS[scalar]
    return {**kinds, "deleted": pa.bool_()}


def _schema(event_type: str) -> pa.Schema:
    kinds = [(name, INSIDE if kind == INSTANT else kind) for name, kind in _fields(event_type).items()]
    return pa.schema([*[(n, INSIDE if kind == INSTANT else kind) for n, kind in CARRIED], *kinds])


def _listed(records: pa.Table, event_type: str) -> pa.Table:
    """Records whose values are known to be whole events, one a line."""
    kinds = _fields(event_type)
    written = pa.schema([(name, pa.string() if kind == INSTANT else kind) for name, kind in kinds.items()])
    read = _json(records["value"].to_pylist(), written, event_type)
    columns = [*(records[name] for name, _ in CARRIED), *(read[name].cast(kind) for name, kind in kinds.items())]
    schema = _schema(event_type)
    events = pa.table([column.cast(f.type) for column, f in zip(columns, schema, strict=True)], schema=schema)
    return events.filter(pa.compute.equal(events["event_type"], event_type))


def _json(lines: list[bytes], written: pa.Schema, event_type: str) -> pa.Table:
    """Raises ValueError where a line is not one JSON object."""
    try:
        read = pyarrow.json.read_json(
            pa.BufferReader(b"\n".join(lines)),
            read_options=pyarrow.json.ReadOptions(block_size=64 << 20),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{event_type}: a record that is listed as a fact is none: {error}") from error
    if read.num_rows != len(lines):
        raise ValueError(f"{event_type}: {len(lines)} records that are listed as facts hold {read.num_rows} objects")
    return read
