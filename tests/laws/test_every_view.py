"""Every view on random histories against its oracle, which shares no code with it; and the kit that does this."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import Phase

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.definitions.measures.base import Measure, StateColumn
from spark_jobs.definitions.measures.exact import Count, MaxBy, MinBy, Sum
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.kinds import Kind
from spark_jobs.registry.views import event_types_of, project_views
from spark_jobs.sample.oracle.answers import Oracle
from spark_jobs.testing import cases, laws
from spark_jobs.testing.strategies import START, STEPS
from tests.contract_files import broken_examples
from tests.depth import examples
from tests.laws.sequence_views import with_reach, with_resolve
from tests.platform import OF_EACH_KIND

OF_THE_RECORD = ("timestamp", "rejected")
VALUES: Mapping[str, Mapping[str, list[Any]]] = {
    "payments_flagged": {"amount_cents": [500, 501, 49_999, 50_000], "country": ["CH", "BR"], "card_id": ["c"]},
    "order_state": {"order_id": ["o"]},
    "bus_speed": {"lat": [47.04, 47.05, 47.0625], "lon": [8.29, 8.3, 8.3125], "bus_id": ["b"]},
    "search_click_through": {"session_id": ["v"], "search_id": ["s", "t"]},
    "search_rate_by_hour": {"session_id": ["v"], "search_id": ["s", "t"]},
    "ad_click_through": {"impression_id": ["i", "j"]},
    "ad_rate_by_hour": {"impression_id": ["i", "j"]},
    "orders_current": {"op": ["r", "c", "u"]},  # a deletion says so in two fields: the cases have some
}


def records(batches: cases.Batches) -> pa.Table:
    """The events as they lie in the log."""
    offsets: dict[str, int] = {}
    rows = []
    for lsn, batch in enumerate(batches, 1):
        for event_type, fields in (item for event in batch for item in event.items()):
            contract = project_contracts().of(event_type)
            offset = offsets[contract.topic] = offsets.get(contract.topic, -1) + 1
            place = {"lsn": lsn, "topic": contract.topic, "partition": 0, "offset": offset}
            base = {**contract.flat(contract.examples[0]), "event_type": event_type, **fields}
            is_tombstone = fields.get("deleted") is True
            at = datetime.fromisoformat(fields.get("timestamp", fields["occurred_at"]))
            if contract.nested and not is_tombstone:
                base |= nested(contract, base)
            there = {name: one for name, one in base.items() if one is not None and name not in OF_THE_RECORD}
            value = None if is_tombstone else _broken(contract, fields.get("rejected")) or json.dumps(there).encode()
            key = base[contract.key] if not contract.nested else json.dumps({contract.key: base[contract.key]})
            rows.append({**place, "timestamp": at, "key": str(key).encode(), "value": value})
    return pa.Table.from_pylist(rows, row_types.RECORD)


def nested(contract: Contract, flat: Mapping[str, Any]) -> dict[str, Any]:
    """A record as a connector writes it; each at a position of its own, of which its id is made."""
    made: dict[str, Any] = {}
    for name, rules in contract.schema["properties"].items():
        place = rules.get("x-from")
        if isinstance(place, str) and "=" not in place and flat.get(name) is not None:
            *outer, last = place.partition("|")[0].split(".")
            inside = made
            for one in outer:
                inside = inside.setdefault(one, {})
            inside[last] = flat[name]
    made["source"]["lsn"] = int(flat["event_id"][:8], 16)
    return made


def _broken(contract: Contract, reason: str | None) -> bytes | None:
    """Bytes that are rejected for this reason."""
    ways = {why: json.dumps(bad).encode() for bad, why, _ in broken_examples(contract)} | {"not_json": b"{"}
    return ways[reason] if reason else None


def oracle_of(view: Served) -> cases.Oracle:
    now = START + laws.step_of(view) * (STEPS // 2)
    return lambda batches: Oracle(records(batches), now=now).expected(view.name).to_pylist()


EVERY = [
    pytest.param(view, id=name, marks=[] if name in OF_EACH_KIND else pytest.mark.slow)
    for name, view in project_views().served.items()
]


@pytest.mark.parametrize("view", EVERY)
def test_the_laws_hold_and_the_answer_is_the_oracles(view: Served) -> None:
    cases.check(view, oracle_of(view), values=VALUES.get(view.name), examples=examples(5))


class CountsTheMost(Count):
    """Wrong: of two parts it takes the greater one."""

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [replace(part, merge=f"max([{part.column}])") for part in super().state(name, kind)]


def by_store(measure: Measure, **more: Any) -> Served:
    declared = Aggregate(of="order_placed", by={"store_id": "store_id"}, measures={"orders": measure}, owner="tests",
                         description="a law", **more)  # fmt: skip
    return bind_aggregate("law", declared, event_types_of(project_contracts()))


def sequence(name: str) -> SequenceView:
    view = project_views()[name]
    assert isinstance(view, SequenceView)
    return view


def short() -> SequenceView:
    """`resolve` looks half an hour ahead; the reach says five minutes."""
    ahead = with_resolve(sequence("ad_click_through"), "{shown_reach}", "1800000000")
    closes = with_resolve(ahead, "THEN ts + 1800000000 ELSE", "THEN ts + {shown_reach} ELSE")
    return with_reach(closes, "shown", "5 minutes")


def uncovered() -> SequenceView:
    """An arrival waits for its departure, and no result says so."""
    return with_resolve(sequence("aircraft_turnarounds"), "coalesce(next_ts, {forever}) AS", "ts AS")


def orders_per_store(batches: cases.Batches) -> list[dict[str, Any]]:
    stores = Counter(event["order_placed"]["store_id"] for batch in batches for event in batch)
    return [{"store_id": store, "orders": count} for store, count in stores.items()]


BROKEN = {
    "parts that do not add up": (by_store(CountsTheMost()), None, "are what speed alone is"),
    "a filter that the oracle lacks": (by_store(Count(), where="store_id > 1"), orders_per_store, "is the oracle's"),
    "an ordinal per key": (
        with_resolve(sequence("sessions"), "count(*) AS pages", "number AS pages"),
        None,
        "after a quiet instant",
    ),
    "a reach that is too short": (short(), None, "after a quiet instant"),
    "a row without bound that no result covers": (uncovered(), None, "after a quiet instant"),
}


FEW: Mapping[str, list[Any]] = {
    "impression_id": ["i"],
    "ad_id": ["a"],
    "user_id": [1],
    "url": ["/"],
    "tailnum": ["N1"],
    "flight_id": ["f"],
    "store_id": [1, 2],
}
"""What it takes to break these; shrinking goes through everything that may vary."""


@pytest.mark.parametrize(("view", "oracle", "law"), BROKEN.values(), ids=BROKEN)
def test_the_kit_finds_a_broken_view_and_prints_the_smallest_case(
    view: Served, oracle: cases.Oracle | None, law: str
) -> None:
    with pytest.raises(laws.LawBroken) as found:
        cases.check(view, oracle, values=FEW, examples=200, seed=3)
    text = str(found.value)
    assert law in text and "seed=3" in text
    events = yaml.safe_load(text.partition("/events.yaml\n")[2].partition("---")[0])
    assert 1 <= sum(map(len, events)) <= 3


def test_e_the_laws_hold_of_the_value_by_another_one() -> None:
    measures = {"dearest": MaxBy("quantity", by="unit_price_cents"), "first": MinBy("user_id", by="occurred_at")}
    declared = replace(by_store(Count()).declaration, measures=measures)
    view = bind_aggregate("law", declared, event_types_of(project_contracts()))
    assert cases.check(
        view, dearest_per_store, values=FEW | {"unit_price_cents": [1, 2], "user_id": [1, 2]}, examples=30
    ).met


def dearest_per_store(batches: cases.Batches) -> list[dict[str, Any]]:
    stores: dict[int, list[dict[str, Any]]] = {}
    for order in (event["order_placed"] for batch in batches for event in batch):
        stores.setdefault(order["store_id"], []).append(order)
    return [
        {
            "store_id": store,
            "dearest": max((order["unit_price_cents"], order["quantity"]) for order in orders)[1],
            "first": min((order["occurred_at"], order["user_id"]) for order in orders)[1],
        }
        for store, orders in stores.items()
    ]


def test_e_the_kit_says_how_many_rows_met_and_keeps_unique_fields_apart() -> None:
    per_order = replace(by_store(Count()).declaration, by={"order_id": "order_id"})
    view = bind_aggregate("law", per_order, event_types_of(project_contracts()))
    apart, among = cases.check(view, unique=["order_id"], examples=10), cases.check(view, examples=10)
    assert apart.rows and not apart.met, apart
    assert among.met, among
    assert str(apart).endswith("0 of them met another one of their key")


def test_b16_an_end_that_is_rightly_bounded_needs_no_forever() -> None:
    """An arrival of unbounded reach whose result closes after an hour at the latest: the laws decide, not the text."""
    hour = 3_600_000_000
    ends = f"coalesce(CASE WHEN next_ts - ts <= {hour} THEN next_ts END, ts + {hour})"
    view = with_resolve(sequence("aircraft_turnarounds"), "coalesce(next_ts, {forever})", ends)
    view = with_resolve(
        view, "WHEN next_flight IS NOT NULL", f"WHEN next_flight IS NOT NULL AND next_ts - ts <= {hour}"
    )
    assert "{forever}" not in str(view.declaration.resolve)
    assert cases.check(view, values=FEW, examples=40).met


@pytest.fixture
def any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first history that breaks a law will do: to find the smallest one takes most of the time."""
    monkeypatch.setattr(laws, "PHASES", (Phase.generate,))


@pytest.mark.usefixtures("any_case")
def test_the_kit_finds_a_repetition_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases.dedupe, "first_of_each", lambda facts: (facts, facts.slice(0, 0)))
    with pytest.raises(laws.LawBroken, match="an event that comes twice counts once"):
        cases.check(by_store(Count()), values=FEW)


@pytest.mark.usefixtures("any_case")
def test_the_kit_finds_micro_batches_that_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts that know how many came with them."""
    view, facts = by_store(Sum("quantity")), cases.facts

    def counted(batches: cases.Batches) -> cases.Facts:
        sized = [[{t: {**f, "quantity": len(batch)} for t, f in event.items()} for event in batch] for batch in batches]
        return facts(sized)

    monkeypatch.setattr(cases, "facts", counted)
    with pytest.raises(laws.LawBroken, match="how events are divided into micro-batches changes no answer"):
        cases.check(view, values=FEW)
