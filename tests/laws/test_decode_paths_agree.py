"""Law: what is proven in bulk equals what JSON Schema says of each record alone.

Events of every type, written in many styles, spoilt at random (`spoilt_records`): both ways must give the same facts
and the same rejects, to the word. A batch holds the good record beside the spoilt ones, so that a layout learned from
the one is tried on the others.
"""

import json

import pytest
from hypothesis import given, settings

from spark_jobs.engine.decode import assemble
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.bulk import layouts
from spark_jobs.engine.record_outcomes import countable
from tests.laws.spoilt_records import CONTRACTS, SENT, batches, table

NEIGHBOURS = [bytes([byte]) for byte in b'\0 "\\-.:059gZ,}\xc3']
MORE = ("é", "\n", "\\", '"', 1, 0.5, True, None)


@pytest.fixture(autouse=True, scope="module")
def bulk_for_few_records():
    """Look for layouts however few records have them."""
    patch = pytest.MonkeyPatch()
    patch.setattr(layouts, "FEWEST", 1)
    patch.setattr(layouts, "POOR", 1000)
    yield
    patch.undo()


@settings(max_examples=250)
@given(batches())
def test_bulk_and_row_by_row_give_the_same_facts_and_the_same_rejects(batch):
    assert_same(batch)


@settings(max_examples=60)
@given(batches())
def test_where_blocks_are_cut_changes_nothing(batch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_jobs.engine.decode.bulk.blocks.ROWS", 2)
        assert_same(batch)


@pytest.mark.parametrize("event_type", ["order_placed", "bus_position_reported", "airline_changed"])
def test_every_record_that_is_one_byte_away_from_a_good_one(event_type):
    """These three have fields of every kind."""
    contract = CONTRACTS.of(event_type)
    event = contract.examples[0] | ({"deleted": True} if contract.compacted else {})
    good = json.dumps(event, separators=(",", ":")).encode()
    places = range(len(good) + 1)
    inserted = [good[:at] + byte + good[at:] for at in places for byte in NEIGHBOURS]
    replaced = [good[:at] + byte + good[at + 1 :] for at in places for byte in NEIGHBOURS]
    removed = [good[:at] + good[at + 1 :] for at in places]
    assert_same([(contract.topic, value, None) for value in (good, *inserted, *replaced, *removed)])


@pytest.mark.parametrize("contract", [one for one in SENT if not one.nested], ids=lambda one: one.event_type)
def test_plainly_written_events_are_proven_in_bulk(contract, monkeypatch):
    def never(*_):
        raise AssertionError("a plainly written event was judged alone")

    monkeypatch.setattr(assemble, "judge", never)
    extended = [{**event, "more": more} for event in contract.examples for more in MORE]
    facts = decode(table([(contract.topic, json.dumps(event).encode(), None) for event in extended]), CONTRACTS).facts
    assert facts[contract.event_type].num_rows == len(extended)


def test_halves_of_a_character_in_neighbouring_records_make_no_whole():
    good = json.dumps(CONTRACTS.of("sentence_posted").examples[0]).encode()
    assert_same([("sentence_posted", value, None) for value in (good + b"\xc3", b"\xa9" + good, good)])


def assert_same(batch):
    records = table(batch)
    bulk, alone = decode(records, CONTRACTS), assemble.by_row(records, CONTRACTS)
    assert in_order(bulk.rejects).to_pylist() == in_order(alone.rejects).to_pylist()
    assert bulk.facts.keys() == alone.facts.keys()
    for event_type, facts in alone.facts.items():
        assert in_order(bulk.facts[event_type]).equals(in_order(facts)), event_type
    assert len(records) == len(alone.rejects) + sum(map(len, countable(alone.facts).values()))


def in_order(rows):
    return rows.sort_by("offset").combine_chunks()
