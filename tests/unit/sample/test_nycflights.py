"""The flights of 2013 as events: the known figures, the contracts, the order, and ids that repeat themselves."""

import json
import uuid
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.sample.block import Block
from spark_jobs.sample.sources import nycflights


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return list(nycflights.blocks())


def of_type(blocks: list[Block], event_type: str) -> list[bytes]:
    return [value for block in blocks if block.topic == event_type for value in block.values]


def origins(values: list[bytes]) -> dict[str, int]:
    return dict(Counter(value.split(b'"origin":"')[1][:3].decode() for value in values))


def test_departures_and_cancellations_per_airport_are_the_known_ones(blocks):
    departed, cancelled = of_type(blocks, "flight_departed"), of_type(blocks, "flight_cancelled")
    assert origins(departed) == {"EWR": 117_596, "JFK": 109_416, "LGA": 101_509}
    assert origins(cancelled) == {"EWR": 3_239, "JFK": 1_863, "LGA": 3_153}
    assert len(departed) + len(cancelled) == 336_776


def test_every_flight_with_air_time_arrives_and_every_airline_has_a_name(blocks):
    raw = pd.read_csv(nycflights.folder() / "flights.csv.zip", usecols=["air_time"])
    assert len(of_type(blocks, "flight_arrived")) == int(raw["air_time"].notna().sum())
    names = [json.loads(value) for value in of_type(blocks, "airline_changed")]
    assert len(names) == 16 and {"carrier": "UA", "name": "United Air Lines Inc."}.items() <= names[11].items()


def test_the_first_flight_is_the_one_in_the_book(blocks):
    first = json.loads(of_type(blocks, "flight_departed")[0])
    assert first.pop("event_id") == str(uuid.uuid5(nycflights.NAMESPACE, "flight_departed/2013-01-01/UA1545/EWR"))
    assert first == {
        "event_type": "flight_departed", "occurred_at": "2013-01-01T10:17:00.000Z",
        "flight_id": "2013-01-01/UA1545/EWR", "carrier": "UA", "flight": 1545, "tailnum": "N14228",
        "origin": "EWR", "dest": "IAH", "scheduled_at": "2013-01-01T10:15:00.000Z", "delay_minutes": 2,
    }  # fmt: skip
    arrived = next(v for v in of_type(blocks, "flight_arrived") if b'"2013-01-01/UA1545/EWR"' in v)
    assert json.loads(arrived)["occurred_at"] == "2013-01-01T14:04:00.000Z"  # 227 minutes later


def test_events_satisfy_their_contracts(blocks):
    for event_type in nycflights.EVENT_TYPES:
        contract = project_contracts().of(event_type)
        validator = Draft202012Validator(contract.schema)
        every = [
            (key, value)
            for b in blocks
            if b.topic == event_type
            for key, value, outcome in zip(b.keys, b.values, b.outcomes, strict=True)
            if outcome == "fact"
        ]
        for key, value in every[:: max(1, len(every) // 400)]:
            event = json.loads(value)
            validator.validate(event)
            assert str(event[contract.key]).encode() == key


def test_the_weather_is_that_of_the_file_and_its_one_impossible_wind_is_to_be_rejected(blocks):
    weather = [(json.loads(v), o, r) for b in blocks if b.topic == "weather_observed"
               for v, o, r in zip(b.values, b.outcomes, b.reasons, strict=True)]  # fmt: skip
    assert len(weather) == 26_115
    (stormy,) = [(event["origin"], event["occurred_at"][:10], r) for event, o, r in weather if o == "rejected"]
    assert stormy == ("EWR", "2013-02-12", "out_of_range")
    first = {k: v for k, v in weather[0][0].items() if k != "event_id"}
    assert first == {
        "event_type": "weather_observed", "occurred_at": "2013-01-01T06:00:00.000Z", "origin": "EWR", "temp_f": 39.02,
        "wind_mph": 10.357019999999999, "precip_inches": 0.0, "visibility_miles": 10.0,
    }  # fmt: skip
    assert sum("wind_mph" not in event for event, *_ in weather) == 4


def test_every_aircraft_says_what_it_is(blocks):
    planes = [json.loads(value) for value in of_type(blocks, "plane_changed")]
    assert len(planes) == 3_322 and sum("built_in" not in plane for plane in planes) == 70


def test_an_unknown_aircraft_is_left_out(blocks):
    raw = pd.read_csv(nycflights.folder() / "flights.csv.zip", usecols=["dep_time", "tailnum"])
    unknown = int((raw["tailnum"].isna() & raw["dep_time"].isna()).sum())
    assert unknown and sum(b"tailnum" not in v for v in of_type(blocks, "flight_cancelled")) == unknown


def test_no_two_events_share_an_id(blocks):
    ids = [value[13:49] for block in blocks for value in block.values]
    assert len(set(ids)) == len(ids) == nycflights.EVENTS


def test_events_go_out_in_the_order_of_their_times(blocks):
    for event_type in nycflights.EVENT_TYPES:
        due = np.concatenate([block.due for block in blocks if block.topic == event_type])
        assert (np.diff(due) >= 0).all()
    previous: list[Block] = []
    for block in blocks:  # a chunk's topics side by side, then the next chunk
        if block.topic in {p.topic for p in previous}:
            last, previous = max(p.due[-1] for p in previous), []
            assert block.due[0] >= last
        previous.append(block)


def test_a_limit_takes_the_first_events_and_an_import_repeated_sends_the_same_bytes(blocks):
    first = list(nycflights.blocks(limit=100))
    assert sum(map(len, first)) == 100 and [block.topic for block in first] == ["airline_changed", "plane_changed"]
    for one in first:
        whole = next(block for block in blocks if block.topic == one.topic)
        assert (one.keys, one.values) == (whole.keys[: len(one)], whole.values[: len(one)])


def test_ids_are_plain_version_5_uuids():
    names = [f"flight_departed/2013-01-01/UA{n}/EWR" for n in range(200)]
    assert [nycflights.event_id(name) for name in names] == [str(uuid.uuid5(nycflights.NAMESPACE, n)) for n in names]
