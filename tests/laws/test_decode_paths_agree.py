"""Law: what is proven in bulk equals what JSON Schema says of each record alone.

Events of every type, written in many styles, spoilt at random (`spoilt_records`): both ways must give the same facts
and the same rejects, to the word. A batch holds the good record beside the spoilt ones, so that members that were seen
in the one are known of the others. Objects inside a record are spoilt like the record itself.
"""

import json
import random

import pytest
from hypothesis import given, settings

from spark_jobs.engine.decode import assemble
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.bulk import prove
from spark_jobs.engine.record_outcomes import countable
from tests.decoded_by_row import by_row
from tests.depth import examples
from tests.laws.spoilt_records import CONTRACTS, NESTED, SENT, batches, table

NEIGHBOURS = [bytes([byte]) for byte in b'\0 "\\-.:059gZ,}\xc3']
MORE = ("é", "\n", "\\", '"', 1, 0.5, True, None, 10**18, [], [1, ["a"]], {}, {"a": {"b": '"'}})


@pytest.fixture(autouse=True, scope="module")
def bulk_for_few_records():
    """However few records there are."""
    patch = pytest.MonkeyPatch()
    patch.setattr(prove, "FEWEST", 1)
    yield
    patch.undo()


@settings(max_examples=examples(100))
@given(batches())
def test_bulk_and_row_by_row_give_the_same_facts_and_the_same_rejects(batch):
    assert_same(batch)


@settings(max_examples=examples(100))
@given(batches(NESTED))
def test_nested_records_too_give_the_same_facts_and_the_same_rejects(batch):
    assert_same(batch)


@settings(max_examples=examples(25))
@given(batches())
def test_where_blocks_are_cut_changes_nothing(batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_jobs.engine.decode.assemble.ROWS", 2)
        assert_same(batch)


@pytest.mark.parametrize(
    "event_type", ["order_placed", "bus_position_reported", "airline_changed", "order_row_changed", "heart_beaten"]
)
def test_every_record_that_is_one_byte_away_from_a_good_one(event_type):
    """These five have fields of every kind."""
    contract = CONTRACTS.of(event_type)
    event = min(contract.examples, key=lambda one: len(str(one)))
    event |= {"deleted": True} if contract.compacted and not contract.nested else {}
    good = json.dumps(event, separators=(",", ":")).encode()
    places = range(len(good) + 1)
    inserted = [good[:at] + byte + good[at:] for at in places for byte in NEIGHBOURS]
    replaced = [good[:at] + byte + good[at + 1 :] for at in places for byte in NEIGHBOURS]
    removed = [good[:at] + good[at + 1 :] for at in places]
    assert_same([(contract.topic, value, None) for value in (good, *inserted, *replaced, *removed)])


@pytest.fixture
def never_alone(monkeypatch):
    def never(*_):
        raise AssertionError("an event was judged alone")

    monkeypatch.setattr(assemble, "judge", never)


@pytest.mark.parametrize("contract", SENT, ids=lambda one: one.event_type)
def test_good_events_are_proven_in_bulk_whatever_they_have_besides(contract, never_alone):
    assert_facts(contract, [{**event, "more": more} for event in contract.examples for more in MORE])


@pytest.mark.parametrize("contract", SENT, ids=lambda one: one.event_type)
def test_the_order_of_members_is_nothing_to_the_bulk(contract, never_alone):
    chance = random.Random(7)
    assert_facts(contract, [shuffled(event, chance) for event in contract.examples * 50])


def test_nested_events_are_proven_in_bulk_whichever_of_their_values_are_null(never_alone):
    """As a table with columns that may be null has them: a column in three ways, so the rows in hundreds."""
    contract, chance = CONTRACTS.of("order_row_changed"), random.Random(7)
    columns = [f"column_{number}" for number in range(6)]
    rows = [
        {**contract.examples[0]["after"], **{one: chance.choice([None, 1, "x"]) for one in columns}} for _ in range(300)
    ]
    events = [{**contract.examples[0], "before": chance.choice([None, row]), "after": row} for row in rows]
    assert_facts(contract, [*events, *({**event, "op": "d", "after": None} for event in events if event["before"])])


def shuffled(event, chance):
    names = chance.sample(list(event), len(event))
    return {name: shuffled(event[name], chance) if isinstance(event[name], dict) else event[name] for name in names}


def assert_facts(contract, events):
    """All of them, without a look at one alone, and as they are when looked at alone."""
    records = table([(contract.topic, json.dumps(event).encode(), None) for event in events])
    assert decode(records, CONTRACTS).facts[contract.event_type].num_rows == len(events)


def test_halves_of_a_character_in_neighbouring_records_make_no_whole():
    good = json.dumps(CONTRACTS.of("sentence_posted").examples[0]).encode()
    assert_same([("sentence_posted", value, None) for value in (good + b"\xc3", b"\xa9" + good, good)])


def assert_same(batch):
    records = table(batch)
    bulk, alone = decode(records, CONTRACTS), by_row(records, CONTRACTS)
    assert in_order(bulk.rejects).to_pylist() == in_order(alone.rejects).to_pylist()
    assert bulk.facts.keys() == alone.facts.keys()
    for event_type, facts in alone.facts.items():
        assert in_order(bulk.facts[event_type]).equals(in_order(facts)), event_type
    assert len(records) == len(alone.rejects) + sum(map(len, countable(alone.facts).values()))


def in_order(rows):
    return rows.sort_by("offset").combine_chunks()
