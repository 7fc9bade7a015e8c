"""A slice is disturbed by a seed: the same every time, and each record that is sent becomes what its role says."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.drill.disturbances import BREAKS, MALFORM, REACH, REORDER, REPEAT, Role, Sending, disturbed
from spark_jobs.drill.slice_of_log import Found
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.messaging.producer import Record

EVENT = Found(Record("order_placed", b"0", b'{"event_id": "0"}'), counts=True, has_id=True)


def found(number: int) -> list[Found]:
    """So many events, each with a key of its own, and every tenth a record that no schema accepts."""
    named = (b'{"event_id": "%d"}' % place for place in range(number))
    records = (Record("order_placed", b"%d" % place, value) for place, value in enumerate(named))
    return [replace(EVENT, record=record, counts=place % 10 > 0) for place, record in enumerate(records)]


def roles(sendings: list[Sending]) -> Counter[Role]:
    return Counter(sending.role for sending in sendings)


def test_the_same_seed_gives_the_same_and_another_one_something_else() -> None:
    every = (REPEAT, REORDER, MALFORM)
    assert disturbed(found(1000), every, 7) == disturbed(found(1000), every, 7) != disturbed(found(1000), every, 8)


def test_without_exercises_the_slice_is_sent_as_it_is() -> None:
    assert [sending.record for sending in disturbed(found(50), (), 7)] == [one.record for one in found(50)]
    assert roles(disturbed(found(50), (), 7)) == {Role.EVENT: 45, Role.REJECT: 5}


def test_a_repeat_is_the_same_bytes_under_the_same_key_and_comes_later() -> None:
    sendings = disturbed(found(2000), (REPEAT, REORDER), 7)
    assert 120 < roles(sendings)[Role.REPEAT] < 250
    first = {sending.record: place for place, sending in reversed([*enumerate(sendings)])}
    for place, sending in enumerate(sendings):
        if sending.role is Role.REPEAT:
            assert sendings[first[sending.record]].role is Role.EVENT and first[sending.record] < place


@pytest.mark.parametrize(
    "other", [{"has_id": False}, {"counts": False}, {"record": replace(EVENT.record, key=None)}], ids=str
)
def test_what_would_count_again_is_not_repeated(other: dict[str, object]) -> None:
    """A record without an id is another event each time; one without a key may come to another partition first."""
    sendings = disturbed([replace(EVENT, **other)] * 500, (REPEAT,), 7)  # type: ignore[arg-type]
    assert len(sendings) == 500 and roles(sendings)[Role.REPEAT] == 0


def test_reordering_moves_records_no_further_than_it_says() -> None:
    sendings = disturbed(found(3000), (REORDER,), 7)
    moved = [int(sending.record.key or b"") - place for place, sending in enumerate(sendings)]
    assert 0 < max(moved) <= REACH and min(moved) >= -REACH


@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_what_is_malformed_is_a_reject_of_every_event_type(number: int) -> None:
    for contract in project_contracts():
        if contract.is_outcome:
            continue
        broken = BREAKS[number](json.dumps(contract.examples[0]).encode())
        place = {"lsn": 1, "topic": contract.topic, "partition": 0, "offset": 0, "timestamp": datetime.now(UTC)}
        record = {**place, "key": b"k", "value": broken, "headers": None}
        decoded = decode(pa.Table.from_pylist([record], schema=row_types.RECORD), project_contracts())
        assert decoded.rejects.num_rows == 1 and contract.event_type not in decoded.facts
