"""The town: the same bytes for the same plan, in the stated shares, and each record becomes what its ledger says."""

import json
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode import assemble, reasons
from spark_jobs.sample import generate, pace
from spark_jobs.sample.block import Block, facts
from spark_jobs.sample.sources import clicks, draw, market, payments, web

START = 1_740_830_400_000  # 2025-03-01T12:00:00Z
PLAIN = generate.Plan(seed=42, start_ms=START, rate=1000)
ROUGH = replace(PLAIN, late_share=0.05, duplicate_share=0.04, out_of_order_share=0.1, malformed_share=0.03)


def events(plan: generate.Plan, count: int) -> list[Block]:
    return list(generate.blocks(plan, project_contracts(), count))


def digest(blocks: list[Block]) -> str:
    return sha256(
        repr([(b.topic, b.keys, b.values, b.outcomes, b.reasons, b.due) for b in blocks]).encode()
    ).hexdigest()


def records(block: Block) -> pa.Table:
    count = len(block)
    columns = {
        "lsn": pa.repeat(1, count),
        "topic": pa.repeat(block.topic, count),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(np.arange(count)),
        "timestamp": pa.repeat(pa.scalar(START * 1000, row_types.INSTANT), count),
        "key": pa.array(block.keys, pa.binary()),
        "value": pa.array(block.values, pa.binary()),
        "headers": pa.nulls(count, row_types.HEADERS),
    }
    return pa.table(columns, schema=row_types.RECORD)


def good(blocks: list[Block]) -> list[dict]:
    """Each fact's event, with `due` and `topic`; without those that remove their key by a null value."""
    return [
        project_contracts().of(block.topic).flat(json.loads(value)) | {"due": due, "topic": block.topic}
        for block in blocks
        for value, outcome, due in zip(block.values, block.outcomes, block.due, strict=True)
        if outcome == "fact" and value is not None
    ]


def at_ms(event: dict) -> int:
    return int(np.datetime64(event["occurred_at"][:-1], "ms").astype(int))


def test_the_same_plan_gives_the_same_records_in_another_process():
    code = "import test_generate as t; print(t.digest(t.events(t.ROUGH, 30_000)))"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert other.stdout.strip() == digest(events(ROUGH, 30_000))


@pytest.mark.parametrize("change", [{"seed": 43}, {"start_ms": START + 1}, {"rate": 1001}, {"late_share": 0.06}])
def test_another_plan_shares_no_event_with_the_first(change):
    first, second = (good(events(plan, 500)) for plan in (ROUGH, replace(ROUGH, **change)))
    ids = [{event["event_id"] for event in of_town} for of_town in (first, second)]
    assert ids[0] and not ids[0] & ids[1]


def test_fewer_events_are_the_beginning_of_more():
    few, many = events(ROUGH, 1000), events(ROUGH, 100_000)
    for block in few:
        same = next(b for b in many if b.topic == block.topic)
        assert same.values[: len(block)] == block.values


@pytest.mark.parametrize("count", [0, 1, 7, 999, 20_001])
def test_exactly_so_many_records_as_were_asked_for(count):
    assert sum(map(len, events(ROUGH, count))) == count


def test_records_fall_due_at_the_rate_and_in_order():
    blocks = list(islice(generate.blocks(PLAIN, project_contracts()), 40))
    due = sorted(t for b in blocks for t in b.due)
    assert all(list(b.due) == sorted(b.due) for b in blocks)
    assert [b.due[0] for b in blocks] == sorted(b.due[0] for b in blocks)
    complete = min(max(b.due[-1] for b in blocks if b.topic == t) for t in generate.SHARES)
    within = sum(t <= complete for t in due)
    assert within == pytest.approx((complete - START) / 1000 * PLAIN.rate, rel=0.001)


def test_each_record_becomes_what_its_outcome_says_for_the_reason_that_it_gives():
    seen: Counter[str] = Counter()
    for block in events(replace(ROUGH, malformed_share=0.5), 2_500):
        decoded = assemble.decode(records(block), project_contracts())
        rejected = dict(zip(*(decoded.rejects[c].to_pylist() for c in ("offset", "reason")), strict=True))
        expected = {i: r for i, r in enumerate(block.reasons) if block.outcomes[i] == "rejected"}
        assert rejected == expected
        seen.update(rejected.values())
    never = {"unknown_topic", "bad_key", "unknown_version", "number_too_large", "wrong_topic", "retracted", "erased"}
    assert set(seen) == set(reasons.Reason) - never


def test_a_duplicate_repeats_key_and_bytes_of_an_earlier_record_near_or_far():
    distances = []
    first: dict[tuple, int] = {}
    blocks = events(replace(ROUGH, duplicate_share=0.2), 150_000)
    rows = [(b.topic, *row) for b in blocks for row in zip(b.keys, b.values, b.outcomes, strict=True)]
    for number, (topic, key, value, outcome) in enumerate(rows):
        if outcome == "duplicate":
            distances.append(number - first[topic, key, value])
        elif outcome == "fact" and value is not None:  # a null value that is repeated is another fact
            assert first.setdefault((topic, key, value), number) == number
    assert min(distances) < 200 and max(distances) > 20_000
    assert len(distances) == pytest.approx(0.2 * 150_000, rel=0.1)


def test_a_record_without_key_goes_to_no_compacted_topic():
    known = project_contracts()
    blocks = events(replace(ROUGH, malformed_share=0.5), 40_000)
    without = {b.topic for b in blocks if None in b.keys}
    assert without and not without & {contract.topic for contract in known if contract.compacted}


def test_shares_are_kept():
    blocks = events(ROUGH, 100_000)
    outcomes = Counter(o for b in blocks for o in b.outcomes)
    assert outcomes["duplicate"] / 100_000 == pytest.approx(0.04, rel=0.15)
    assert outcomes["rejected"] / 100_000 == pytest.approx(0.03, rel=0.15)
    behind = [event["due"] - at_ms(event) for event in good(blocks)]
    assert sum(ms >= 60_000 for ms in behind) / len(behind) == pytest.approx(0.05, rel=0.1)
    assert sum(1_000 <= ms <= 30_000 for ms in behind) / len(behind) == pytest.approx(0.1, rel=0.1)
    assert min(behind) == 0 and 86_400_000 < max(behind) <= 2 * 86_400_000


def test_every_event_of_an_orderly_town_is_a_fact_of_its_own():
    blocks = events(PLAIN, 20_000)
    nulls = sum(value is None for block in blocks for value in block.values)
    assert len({event["event_id"] for event in good(blocks)}) == 20_000 - nulls
    changelogs = {"profile_changed", "settings_changed", "order_row_changed"}
    assert 0 < nulls < 40 and {b.topic for b in blocks if None in b.values} == changelogs


def test_visitors_leave_so_that_sessions_end():
    views: dict[int, list[int]] = {}
    for event in good(events(replace(PLAIN, rate=1), 20_000)):
        if event["topic"] == "page_viewed":
            views.setdefault(event["user_id"], []).append(event["due"])
    gaps = [after - before for times in views.values() for before, after in pairwise(times)]
    ends = sum(gap > 30 * 60_000 for gap in gaps)
    pages = sum(map(len, views.values())) / (len(views) + ends)
    assert ends and 4 < pages < 12


def test_visitors_do_not_come_back_with_the_next_block():
    visits, rng = web.Visits(rate=0.1), np.random.default_rng(5)
    at = np.full(100, START)
    days = [{int(key) for key in visits(draw.Draw(rng, 0, at, "t", 1))[0]} for _ in range(40)]
    met, again = set(days[0]), 0
    for before, day in pairwise(days[:12]):
        again += len(day & (met - before))
        met |= day
    assert again == 0 and len(set.union(*days)) > 200


def test_a_paced_stream_sends_nothing_before_it_is_due_and_loses_nothing(monkeypatch):
    seconds = iter(np.arange(0, 100, 0.05).tolist())
    now = [0.0]

    def monotonic() -> float:
        now[0] = next(seconds)
        return now[0]

    monkeypatch.setattr(pace.time, "monotonic", monotonic)
    monkeypatch.setattr(pace, "TICK_SECONDS", 0)
    due = [list(range(START + first, START + first + 3000, 7)) for first in (0, 1000)]
    sent: list[int] = []

    def send(block: Block) -> None:
        assert block.due[-1] <= START + now[0] * 1000
        sent.extend(block.due)

    blocks = [facts("t", [b""] * len(times), [b""] * len(times), times) for times in due]
    pace.paced(iter(blocks), send, threading.Event(), START)
    assert sorted(sent) == sorted(due[0] + due[1])
    assert now[0] >= 4


def test_a_stop_ends_a_stream_that_never_ends():
    stop, sent = threading.Event(), []

    def send(block: Block) -> None:
        sent.append(block)
        if len(sent) == 3:
            stop.set()

    pace.fast(generate.blocks(PLAIN, project_contracts()), send, stop)
    assert len(sent) == 3


def test_what_is_clicked_disputed_and_commanded_is_there_to_be_referred_to():
    """Sources find the number of what they refer to by the ratio of the shares."""
    shares = generate.SHARES
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["result_clicked"] == pytest.approx(shares["search_performed"] * clicks.CLICKS_PER_SEARCH)
    assert shares["ad_clicked"] == pytest.approx(shares["ad_shown"] * clicks.CLICKS_PER_SHOWING)
    assert shares["payment_disputed"] == pytest.approx(shares["payment_attempted"] * payments.DISPUTES_PER_PAYMENT)
    assert shares["order_commanded"] == pytest.approx(shares["order_placed"] * market.COMMANDS_PER_ORDER)
