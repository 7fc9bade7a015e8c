"""What Flink is asked to do, as SQL: read every topic, land the records typed, keep views, tell their rows.

contracts -> tables over Kafka, tables of Paimon or ones that keep nothing, an INSERT each -> tests.bench.flink.peer
"""

from collections.abc import Mapping
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


def answers(views: Mapping[str, Kept]) -> dict[str, Answer]:
    """All rows of each view, equal ones of a table without a key as one and their number `n`; of a landed table `n`."""
    found = {}
    for name, kept in views.items():
        found[name] = _answer(name, kept)
    for name in landed():
        event_type = name.removeprefix(LANDED_PREFIX)
        count = f"SELECT '{event_type}', CAST(COUNT(*) AS STRING) FROM {PAIMON}.{name}"
        found[name] = Answer({"event_type": "VARCHAR", "n": "BIGINT"}, count)
    return found


def _answer(name: str, kept: Kept) -> Answer:
    columns = {column: DUCKDB[kind] for column, kind in kept.columns.items()}
    texts = ", ".join(_as_text(column, kind) for column, kind in kept.columns.items())
    if kept.keys:
        return Answer(columns, f"SELECT {texts} FROM {PAIMON}.{name}")
    together = f"SELECT {texts}, CAST(COUNT(*) AS STRING) FROM {PAIMON}.{name} GROUP BY {', '.join(columns)}"
    return Answer(columns | {"n": "BIGINT"}, together)


def _as_text(column: str, kind: str) -> str:
    if kind != INSTANT:
        return f"CAST(`{column}` AS STRING)"
    return f"DATE_FORMAT(`{column}`, '{'yyyy-MM-dd HH' if column == 'hour' else 'yyyy-MM-dd HH:mm:ss.SSS'}')"


def _listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
