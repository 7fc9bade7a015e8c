"""Revisions at random, of any records."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import OF_QUARANTINE, Action, Content, Place, Revision
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged


def said_of(chance: random.Random, record: dict[str, Any], lsns: int) -> Iterator[Revision]:
    """What could be said of a record, one or two things at later lsns."""
    found = decode_logged(pa.Table.from_pylist([record], row_types.RECORD), EVERY_SCHEMA).facts
    facts = [row for rows in record_outcomes.countable(found).values() for row in rows.to_pylist()]
    about = {name: facts[0][name] for name in ("event_type", "event_id", "identity")} if facts else {}
    at, where = datetime(2026, 3, 1, tzinfo=UTC), Place(*(record[name] for name, _ in row_types.COORDINATES))
    for lsn in sorted(chance.choices(range(record["lsn"] + 1, lsns + 3), k=chance.choice((1, 1, 2)))):
        action = chance.choice([one for one in Action if one is Action.ERASE or (one in OF_QUARANTINE) != bool(facts)])
        if action is Action.ERASE:
            yield Revision(lsn, action, where, "why", "ada", at, "r")
            continue
        value = (record["value"] or b"").replace(b"2023-", b"2024-") or None
        mended = value if facts else json.dumps(chance.choice(project_contracts().of("page_viewed").examples)).encode()
        content = Content(record["topic"] if facts else "page_viewed", record["key"], mended, ())
        yield Revision(
            lsn, action, where, "why", "ada", at, "r", **about,
            content=content if action in (Action.READMIT, Action.SUPERSEDE) else None,
        )  # fmt: skip
