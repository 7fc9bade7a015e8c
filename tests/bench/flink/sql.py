"""What Flink is asked to do, as SQL: read every topic, land the records typed, keep six aggregates.

contracts -> tables over Kafka, tables of Paimon or ones that keep nothing, an INSERT each -> tests.bench.flink.peer

The aggregates are those of tests/bench/peers.py; Flink has no approximate distinct count over streams, it counts
exactly.
"""

from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.sample.sources.town import SHARES

INSTANT = "TIMESTAMP_LTZ(3)"
TYPES = {
    "string": "STRING",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp[us, tz=UTC]": INSTANT,
}
DUCKDB = {"STRING": "VARCHAR", "BIGINT": "BIGINT", "DOUBLE": "DOUBLE", "DATE": "DATE", INSTANT: "VARCHAR"}
PAIMON = "paimon.`default`"
LANDED_PREFIX = "landed_"
READ = [name for name in SHARES if not project_contracts().of(name).nested]
"""What the town sends, but for nested records, a hundredth of all."""


@dataclass(frozen=True)
class Kept:
    """A table that Flink keeps: its columns, the first `keys` of them its primary key, and the query that fills it."""

    columns: dict[str, str]
    keys: int
    query: str

    def created(self, table: str, options: dict[str, str]) -> str:
        parts = [f"`{name}` {kind}" for name, kind in self.columns.items()]
        if self.keys:
            names = ", ".join(f"`{name}`" for name in list(self.columns)[: self.keys])
            parts.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
        return f"CREATE TABLE {table} ({', '.join(parts)}) WITH ({_listed(options)})"


def source(event_type: str, servers: str) -> str:
    """A table over the topic, from its first record to those that are there now."""
    columns = ", ".join(f"`{name}` {kind}" for name, kind in fields(event_type).items())
    options = {
        "connector": "kafka",
        "topic": event_type,
        "properties.bootstrap.servers": servers,
        "properties.group.id": "flink",
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
        "json.ignore-parse-errors": "true",
        "json.timestamp-format.standard": "ISO-8601",
    }
    return f"CREATE TEMPORARY TABLE `{event_type}` ({columns}) WITH ({_listed(options)})"


def fields(event_type: str) -> dict[str, str]:
    """Column -> Flink's type, of the records of an event type."""
    own = {field.name: TYPES[str(field.arrow)] for field in project_contracts().of(event_type).fields}
    return {"event_id": "STRING", "event_type": "STRING", "occurred_at": INSTANT} | own


def landed() -> dict[str, Kept]:
    """A table per event type that is read."""
    return {f"{LANDED_PREFIX}{name}": Kept(fields(name), 0, f"SELECT * FROM `{name}`") for name in READ}


HOUR = "FLOOR(occurred_at TO HOUR)"


def views() -> dict[str, Kept]:
    """The aggregates; a record without a key belongs to none."""
    return _of_orders() | _of_others()


def _of_orders() -> dict[str, Kept]:
    revenue = "SUM(quantity * unit_price_cents)"
    sound = "store_id IS NOT NULL AND occurred_at IS NOT NULL"
    return {
        "orders_by_day": Kept(
            {"store_id": "BIGINT", "day": "DATE", "orders": "BIGINT", "revenue_cents": "BIGINT"},
            2,
            f"SELECT store_id, CAST(occurred_at AS DATE), COUNT(*), {revenue} FROM order_placed WHERE {sound} "
            "GROUP BY store_id, CAST(occurred_at AS DATE)",
        ),
        "orders_by_hour": Kept(
            {"store_id": "BIGINT", "hour": INSTANT, "orders": "BIGINT", "revenue_cents": "BIGINT", "buyers": "BIGINT"},
            2,
            f"SELECT store_id, {HOUR}, COUNT(*), {revenue}, COUNT(DISTINCT user_id) FROM order_placed WHERE {sound} "
            f"GROUP BY store_id, {HOUR}",
        ),
        "orders_by_colour": Kept(
            {"colour": "STRING", "orders": "BIGINT", "mean_price": "DOUBLE"},
            1,
            "SELECT colour, COUNT(*), AVG(CAST(unit_price_cents AS DOUBLE)) FROM order_placed "
            "WHERE colour IS NOT NULL GROUP BY colour",
        ),
    }


def _of_others() -> dict[str, Kept]:
    words = "SPLIT(REGEXP_REPLACE(LOWER(`text`), '[^a-z0-9]+', ' '), ' ')"
    newest = "ROW_NUMBER() OVER (PARTITION BY bus_id ORDER BY occurred_at DESC)"
    position = "bus_id, occurred_at, line, lat, lon"
    return {
        "page_views_per_user_hour": Kept(
            {"user_id": "BIGINT", "hour": INSTANT, "page_views": "BIGINT"},
            2,
            f"SELECT user_id, {HOUR}, COUNT(*) FROM page_viewed "
            f"WHERE user_id IS NOT NULL AND occurred_at IS NOT NULL GROUP BY user_id, {HOUR}",
        ),
        "word_count": Kept(
            {"word": "STRING", "n": "BIGINT"},
            1,
            f"SELECT word, COUNT(*) FROM sentence_posted CROSS JOIN UNNEST({words}) AS t (word) "
            "WHERE word <> '' GROUP BY word",
        ),
        "bus_latest": Kept(
            {"bus_id": "STRING", "occurred_at": INSTANT, "line": "STRING", "lat": "DOUBLE", "lon": "DOUBLE"},
            1,
            f"SELECT {position} FROM (SELECT {position}, {newest} AS place FROM bus_position_reported "
            "WHERE bus_id IS NOT NULL AND occurred_at IS NOT NULL) WHERE place = 1",
        ),
    }


@dataclass(frozen=True)
class Answer:
    """A table of Paimon as text: DuckDB's type of each column, and the query of Flink that writes them."""

    columns: dict[str, str]
    query: str

    def created(self, table: str, folder: Path) -> str:
        columns = ", ".join(f"`{column}` STRING" for column in self.columns)
        options = {"connector": "filesystem", "path": folder.as_uri(), "format": "csv"}
        return f"CREATE TEMPORARY TABLE {table} ({columns}) WITH ({_listed(options)})"

    def rows(self, folder: Path) -> str:
        """What DuckDB selects them from."""
        columns = ", ".join(f"'{column}': '{kind}'" for column, kind in self.columns.items())
        return f"read_csv('{folder}/*', header = false, auto_detect = false, columns = {{{columns}}})"


def answers() -> dict[str, Answer]:
    """All rows of each aggregate, and the number of rows of each landed table."""
    found = {}
    for name, kept in views().items():
        texts = ", ".join(_as_text(column, kind) for column, kind in kept.columns.items())
        columns = {column: DUCKDB[kind] for column, kind in kept.columns.items()}
        found[name] = Answer(columns, f"SELECT {texts} FROM {PAIMON}.{name}")
    for name in landed():
        event_type = name.removeprefix(LANDED_PREFIX)
        count = f"SELECT '{event_type}', CAST(COUNT(*) AS STRING) FROM {PAIMON}.{name}"
        found[name] = Answer({"event_type": "VARCHAR", "n": "BIGINT"}, count)
    return found


def _as_text(column: str, kind: str) -> str:
    if kind != INSTANT:
        return f"CAST(`{column}` AS STRING)"
    return f"DATE_FORMAT(`{column}`, '{'yyyy-MM-dd HH' if column == 'hour' else 'yyyy-MM-dd HH:mm:ss.SSS'}')"


def _listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
