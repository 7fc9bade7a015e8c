"""Names and paths of every table, in one place."""

from collections.abc import Iterable

from spark_jobs.settings import settings

SCHEMAS = ("master", "speed", "facts", "batch", "serving", "ops")

MASTER_LOG = "master.log"
QUARANTINE = "master.quarantine"
DUPLICATES = "master.duplicates"
IDENTITIES = "master.identities"
VIEW_REJECTS = "master.view_rejects"
SPEED_PARTIALS = "speed.partials"

ROWS_PER_FILE = 500_000


def facts(event_type: str) -> str:
    """The table of decoded, de-duplicated rows of one event type."""
    return f"facts.{event_type}"


def decoded(event_types: Iterable[str]) -> list[str]:
    """The tables that hold what became of the records of the log."""
    return [*map(facts, event_types), QUARANTINE, DUPLICATES]


def ops(table: str) -> str:
    """The mirror of a table of the ledger."""
    return f"ops.{table}"


def serving(view: str) -> str:
    return f"serving.{view}"


def path(table: str) -> str:
    """Where Spark's catalog keeps a table: `<warehouse>/<schema>.db/<name>`."""
    schema, name = table.split(".")
    return f"{settings().warehouse}/{schema}.db/{name}"


def by_path(table: str) -> str:
    """A table in Spark's SQL, for a session whose catalog does not know its name."""
    return f"delta.`{path(table).replace('`', '``')}`"
