"""Notes: what becomes of a record is said once, at its place, and counted as no fact."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.reasons import UNTYPED
from spark_jobs.engine.dedupe import packed
from spark_jobs.registry.views import RegistryError, load_views
from spark_jobs.sample.sources.malformed import ways
from spark_jobs.speed.pass_rows import ids_of
from tests.local_platform import START, event

KNOWN = project_contracts()
MS = dt.timedelta(milliseconds=1)


def records(*events: tuple[dict[str, Any] | bytes | None, dt.datetime], topic: str = "order_placed") -> pa.Table:
    rows = [
        {"lsn": 1, "topic": topic, "partition": 0, "offset": offset, "timestamp": at, "key": b"1", "headers": []}
        | {"value": json.dumps(one).encode() if isinstance(one, dict) else one}
        for offset, (one, at) in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


def noted(facts: record_outcomes.Facts) -> list[tuple[Any, ...]]:
    found = facts.get(record_outcomes.RECORD_OUTCOME, record_outcomes.OUTCOME_ROW.empty_table()).sort_by("offset")
    return [tuple(row.values()) for row in found.select(["offset", "noted_type", "verdict", "reason"]).to_pylist()]


def test_the_schema_file_says_what_notes_are() -> None:
    contract = KNOWN.of(record_outcomes.RECORD_OUTCOME)
    assert contract.is_outcome and contract.fact_schema == record_outcomes.OUTCOME_ROW
    assert "" not in KNOWN.topics and KNOWN.by_topic("") == ()


@pytest.mark.parametrize("way", [1, 20], ids=["row by row", "in bulk"])
def test_late_is_by_more_than_a_minute_an_hour_a_day(way: int) -> None:
    hour, day = dt.timedelta(hours=1), dt.timedelta(days=1)
    minute = hour / 60
    delays = [-day, 0 * MS, minute, minute + MS, hour, hour + MS, day, day + MS, 4_000 * day] * way
    found = decode(records(*[(event("order_placed", START), START + delay) for delay in delays]), KNOWN)
    reasons = [None, None, None, "minutes", "minutes", "hours", "hours", "days", "days"] * way
    assert noted(found.facts) == [(n, "order_placed", "late", one) for n, one in enumerate(reasons) if one]
    assert found.facts["order_placed"].num_rows == len(delays)


@pytest.mark.parametrize(
    "contract", [KNOWN.of("order_placed"), KNOWN.of("profile_changed")], ids=lambda c: c.event_type
)
def test_a_rejected_record_is_noted_with_its_event_type_where_that_is_known(contract: Contract) -> None:
    good = json.dumps(contract.examples[0]).encode()
    spoilt = [way.apply(good) for way in ways(contract)]
    found = decode(records(*[(value, START) for value in spoilt], topic=contract.topic), KNOWN)
    rejects = found.rejects.to_pylist()
    assert len(rejects) == len(spoilt)
    assert noted(found.facts) == [(r["offset"], r["event_type"], "rejected", r["reason"]) for r in rejects]
    assert {r["reason"] for r in rejects if r["event_type"] is None} <= UNTYPED
    assert not {r["reason"] for r in rejects if r["event_type"]} & UNTYPED


def test_a_note_stands_where_its_record_does_and_happened_when_that_came() -> None:
    found = decode(records((b"{", START), (event("order_placed", START - dt.timedelta(hours=2)), START)), KNOWN).facts
    for one in found[record_outcomes.RECORD_OUTCOME].to_pylist():
        assert (one["lsn"], one["topic"], one["timestamp"], one["occurred_at"]) == (1, "order_placed", START, START)
        assert (one["event_id"], one["identity"], one["event_type"]) == (None, None, record_outcomes.RECORD_OUTCOME)


@pytest.mark.parametrize(
    ("timestamp", "kept"), [(-1_000, 0), (-(2**63), 0), (2**63 - 1, row_types.INSTANTS[-1]), (5_000, 5_000)]
)
def test_a_timestamp_that_cannot_be_kept_counts_as_the_nearest_that_can(timestamp: int, kept: int) -> None:
    sent = records((b"{", START), (event("order_placed", START), START))
    place = sent.schema.get_field_index("timestamp")
    odd = sent.set_column(place, "timestamp", pa.repeat(timestamp, 2).cast(row_types.INSTANT))
    found = decode(odd, KNOWN).facts[record_outcomes.RECORD_OUTCOME]
    assert set(found["occurred_at"].cast(pa.int64()).to_pylist()) == {kept}
    assert noted({record_outcomes.RECORD_OUTCOME: found})[1:] == (
        [(1, "order_placed", "late", "days")] if timestamp > 5_000 else []
    )


def test_a_duplicate_is_noted_as_that_alone_and_what_is_left_as_before() -> None:
    late = event("order_placed", START - dt.timedelta(hours=2))
    found = decode(records((late, START), (b"{", START), (late, START), (event("order_placed", START), START)), KNOWN)
    losers = found.facts["order_placed"].sort_by("offset").slice(1, 1).select(["topic", "partition", "offset"])
    assert losers["offset"].to_pylist() == [2]
    settled = record_outcomes.settled(found.facts, losers)
    assert sorted(settled["order_placed"]["offset"].to_pylist()) == [0, 3]
    assert noted(settled) == [
        (0, "order_placed", "late", "hours"),
        (1, None, "rejected", "not_json"),
        (2, "order_placed", "duplicate", "repeated"),
    ]


def test_notes_take_no_part_in_de_duplication() -> None:
    facts = decode(records((b"{", START), (event("order_placed", START), START + dt.timedelta(hours=2))), KNOWN).facts
    assert record_outcomes.RECORD_OUTCOME in facts and ids_of(facts)["event_type"].to_pylist() == ["order_placed"]
    with pytest.raises(ValueError, match="a fact without identity"):
        packed(facts[record_outcomes.RECORD_OUTCOME])


def test_nobody_sends_a_note() -> None:
    claimed = KNOWN.of(record_outcomes.RECORD_OUTCOME).examples[0]
    for topic in ("order_placed", ""):
        found = decode(records((claimed, START), topic=topic), KNOWN)
        assert record_outcomes.countable(found.facts) == {}
        expected = ("wrong_topic", "record_noted is for the platform alone to note") if topic else ("unknown_topic", "")
        assert found.rejects["reason"][0].as_py() == expected[0] and expected[1] in found.rejects["detail"][0].as_py()


def test_rows_have_no_side_input_of_record_outcomes(tmp_path: Path) -> None:
    text = """from spark_jobs.definitions.api import Row, Sequence

view = Sequence(
    key="user_id",
    rows={"viewed": Row(of="page_viewed", side_input="record_noted", key="user_id", ts="occurred_at", reach="1 minute",
                        columns={"reason": "reason"})},
    owner="o",
    description="d",
)
"""
    (tmp_path / "odd.py").write_text(text)
    with pytest.raises(RegistryError, match="rows have the side input record_noted"):
        load_views(tmp_path)
