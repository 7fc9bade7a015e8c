"""A schema is in force from its entry in the log on; what it says does not change afterwards."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from spark_jobs.contracts import revision_rows, row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import ContractError
from spark_jobs.contracts.schema_history import EVERY_SCHEMA, Entry, SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.sample import generate
from spark_jobs.sample.reference_decoder.json_text import NoEvent
from spark_jobs.sample.reference_decoder.schema_times import Times, times
from spark_jobs.settings import settings
from spark_jobs.speed import land
from spark_jobs.speed.continuity import EMPTY
from spark_jobs.storage import log_reader, tables
from spark_jobs.storage.duckdb_reader import dataset
from tests.contract_files import records, write
from tests.landed import landed, unlisted
from tests.revised import said_of

PAGE = project_contracts().of("page_viewed")
V1, V2 = Entry(0, "page_viewed", 1), Entry(5, "page_viewed", 2)
LSNS = 6


def at(lsn: int, rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "lsn", pa.array([lsn] * rows.num_rows, pa.int64()))


def said(found: Any) -> dict[str, list[tuple[int, str | None]]]:
    """Event type -> (schema version, device) of its facts."""
    rows = {name: of_type.to_pylist() for name, of_type in record_outcomes.countable(found.facts).items()}
    return {name: [(row["schema_version"], row.get("device")) for row in of_type] for name, of_type in rows.items()}


def test_a_version_is_in_force_from_its_entry_on() -> None:
    known = SchemaHistory((V1, V2))
    assert list(known.eras(1, 9)) == [(1, 4), (5, 9)]
    assert list(known.eras(5, 9)) == [(5, 9)] and list(known.eras(6, 6)) == [(6, 6)]
    assert known.at(4).of("page_viewed").version == 1 and known.at(5).of("page_viewed").version == 2
    assert known.at(4) is known.at(3), "decode tells by this that nothing has changed"
    assert known.within(0, 5) == [V2] and known.within(5, 9) == []
    assert EVERY_SCHEMA.at(1) is project_contracts()


def test_a_record_is_read_by_the_newest_version_of_its_lsn() -> None:
    known, sent = SchemaHistory((V1, V2)), records("page_viewed", [PAGE.examples[0]])
    for lsn, expected in ((4, (1, None)), (5, (2, "phone"))):
        assert said(decode_logged(at(lsn, sent), known)) == {"page_viewed": [expected]}
    both = decode_logged(pa.concat_tables([at(4, sent), at(5, sent)]), known)
    assert sorted(said(both)["page_viewed"]) == [(1, None), (2, "phone")]
    assert both.facts["page_viewed"].schema == PAGE.fact_schema, "facts of all versions are one table"


@pytest.mark.parametrize(("lsn", "cut"), [(4, 0), (4, 4), (4, 5), (5, 0)])
def test_a_refused_record_is_a_fact_from_the_cut_on_at_which_a_schema_accepts_it(lsn: int, cut: int) -> None:
    """I13, quarantine loses nothing and re-admits once."""
    found = decode_logged(at(lsn, records("page_viewed", [PAGE.examples[0], b"{"], version=2)), _with_notes(), cut)
    taken = max(lsn, cut) >= V2.lsn
    assert said(found) == ({"page_viewed": [(2, "phone")]} if taken else {})
    reasons = found.rejects["reason"].to_pylist()
    assert sorted(reasons) == (["not_json"] if taken else ["not_json", "unknown_version"])
    told = [
        note
        for note in found.facts[record_outcomes.RECORD_OUTCOME].to_pylist()
        if note["verdict"] == record_outcomes.REJECTED
    ]
    assert [note["reason"] for note in told] == reasons, "each refused record has a note, and no other"


def test_an_accepted_record_is_not_read_again_by_what_comes_later() -> None:
    sent = at(4, records("page_viewed", [PAGE.examples[0]]))
    assert said(decode_logged(sent, SchemaHistory((V1, V2)), cut=9)) == {"page_viewed": [(1, None)]}


def _with_notes() -> SchemaHistory:
    return SchemaHistory((Entry(0, record_outcomes.RECORD_OUTCOME, 1), V1, V2))


@pytest.mark.parametrize("seed", range(8))
def test_the_oracle_reads_each_record_by_the_same_schemas(seed: int, platform_home: Path) -> None:
    """Every record of the town, spoilt ones as well, while schemas come in force at random lsns, and revisions."""
    chance = random.Random(seed)
    names = sorted((one.event_type, one.version) for one in EVERY_SCHEMA.with_new(0).entries)
    entries = [Entry(chance.choice([0, 0, *range(1, LSNS + 1)]), *name) for name in names]
    land.create(SchemaHistory(tuple(entries)))
    cut = chance.randint(0, LSNS)
    plan = generate.Plan(seed=seed, start_ms=1_700_000_000_000, rate=1000.0, malformed_share=0.2)
    sent = unlisted(landed(generate.blocks(plan, project_contracts(), 600), lsns=LSNS))
    records = sent.select(row_types.RECORD.names)
    said = [one for record in records.to_pylist() if chance.random() < 0.3 for one in said_of(chance, record, LSNS)]
    write_deltalake(tables.path(tables.MASTER_LOG), revision_rows.rows(said, date(2026, 3, 1)), mode="append")
    found = decode_logged(records, log_reader.read_schema_history(), cut)
    ours = {place(row): row["reason"] for row in found.rejects.to_pylist()}
    accepted = [row for rows in record_outcomes.countable(found.facts).values() for row in rows.to_pylist()]
    ours |= {place(row): row["event_type"] for row in accepted}
    assert len(ours) == found.rejects.num_rows + len(accepted), "one end for each"
    theirs = times(dataset(tables.MASTER_LOG), cut)
    assert ours == {place(row): verdict(theirs, row) for row in sent.to_pylist()}


def place(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("lsn", "topic", "partition", "offset"))


def verdict(known: Times, record: dict[str, Any]) -> str:
    try:
        return str(known.judged(record)["event_type"])
    except NoEvent as refused:
        return refused.reason


def test_a_log_begins_with_the_schemas_that_there_are(platform_home: Path) -> None:
    assert log_reader.read_schema_history() == EVERY_SCHEMA
    land.create()
    land.create()
    assert log_reader.read_schema_history() == EVERY_SCHEMA.with_new(0) and land.log_end() == EMPTY
    rows = dataset(tables.MASTER_LOG).to_table()
    assert rows.num_rows == len(EVERY_SCHEMA.with_new(0).entries) and set(rows["kind"].to_pylist()) == {"schema"}
    assert json.loads(rows.filter(pc.equal(rows["key"], b"page_viewed.v2"))["value"][0].as_py()) == PAGE.schema


def test_what_a_log_lacks_comes_in_force_later(platform_home: Path) -> None:
    land.create(SchemaHistory(tuple(one for one in EVERY_SCHEMA.with_new(0).entries if one.name != "page_viewed.v2")))
    land.create()
    assert log_reader.read_schema_history().with_new(V2.lsn).within(0, V2.lsn) == [V2]


BEATS = {"type": "integer", "minimum": 1}


@pytest.fixture
def reread(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Writes the project's only schema file, of a heart, anew."""
    folder = platform_home / "schemas"
    monkeypatch.setenv("TIDEMARK_SCHEMAS_FOLDER", str(folder))
    settings.cache_clear()

    def written(**change: Any) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write(folder, **change)
        project_contracts.cache_clear()

    yield written
    project_contracts.cache_clear()


@pytest.mark.parametrize(
    ("now", "what"),
    [
        ({"fields": {"beats": {**BEATS, "minimum": 0}}}, r"says something else now \(properties\.beats\.minimum\)"),
        ({"fields": {"beats": BEATS, "pulse": {"type": "integer"}}}, r"\(properties\.pulse\)"),
        (
            {"fields": {"beats": BEATS}, "x-tidemark": {"key": "beats", "owner": "o", "topic": "t"}},
            r"x-tidemark\.topic",
        ),
        ({"name": "heart_stopped"}, "is gone"),
    ],
)
def test_a_schema_in_force_may_not_say_something_else(
    now: dict[str, Any], what: str, reread: Callable[..., None]
) -> None:
    reread(fields={"beats": BEATS})
    land.create()
    reread(**now)
    with pytest.raises(ContractError, match=rf"heart_beaten\.v1\.json .*{what}.* in force since lsn 0"):
        land.create()


def test_what_a_schema_tells_people_may_change(reread: Callable[..., None]) -> None:
    reread(fields={"beats": BEATS})
    land.create()
    reread(
        fields={"beats": {**BEATS, "description": "Since the last one."}},
        description="A heart beats.",
        **{"x-tidemark": {"key": "beats", "owner": "somebody else"}},
    )
    assert log_reader.read_schema_history().entries == (Entry(0, "heart_beaten", 1), Entry(0, "record_noted", 1))
