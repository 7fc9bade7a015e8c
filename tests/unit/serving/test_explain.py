"""An explanation adds up: what is stored and what came since give the answer, and the records behind it are named."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.serving.explain import ExplainError, Explanation, explain
from spark_jobs.serving.explain_report import lines
from spark_jobs.storage import coverage
from tests.local_platform import START, Platform, event

VIEWS = [
    "orders_by_hour", "orders_by_day", "sessions", "trades", "word_count", "airline_names", "delay_by_carrier_day",
    "average_price_sliding", "orders_last_8_minutes", "late_and_rejected", "payments_scored",
]  # fmt: skip
PLACE = ("layer", "lsn", "topic", "partition", "offset")
DAY = f"day={START.date()}"


def order(number: int, store: int = 3, **fields: Any) -> dict[str, Any]:
    event_id = f"{number:08d}-0000-4000-8000-000000000000"
    return event("order_placed", START, event_id, store_id=store, quantity=1, unit_price_cents=number, **fields)


def page(minute: int, user: int = 7) -> dict[str, Any]:
    return event("page_viewed", START + dt.timedelta(minutes=minute), user_id=user, url=f"/{minute}")


def published(platform: Platform, horizon: dt.datetime | None = None) -> Store:
    """The platform's newest lsn as publication 0."""
    store = ledger.open()
    sources: dict[str, Source] = platform.build(horizon)
    store.finish_publication(store.begin_publication("batch", sources, cut=platform.lsn).id)
    return store


def why(store: Store, platform: Platform, view: str, *key: str, limit: int = 20) -> Explanation:
    return explain(store, platform.views, view, key, limit)


@pytest.fixture
def platform(platform_home: Path) -> Platform:
    return Platform(VIEWS)


def test_d2_where_the_log_ends_is_known_without_the_coverage_of_the_past(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    covered = coverage.covered

    def recorded(above: int, upto: int | None = None) -> coverage.Covered:
        asked.append(above)
        return covered(above, upto)

    monkeypatch.setattr(coverage, "covered", recorded)
    for number in range(3):
        platform.land([order(number)])
    assert why(ledger.open(), platform, "orders_by_day", "store_id=3", DAY).head == 3
    assert asked == [2]


def test_batch_and_speed_parts_add_up_to_the_answer_and_each_record_is_named(platform: Platform) -> None:
    platform.land([order(1), order(2, store=4), order(3)])
    store = published(platform)
    platform.land([order(5), order(1)])
    platform.land([order(7)])
    found = why(store, platform, "orders_by_day", "store_id=3", DAY)
    assert found.answer == [{"store_id": 3, "day": START.date(), "orders": 4, "revenue_cents": 16}]
    assert [row["orders"] for row in found.batch["row"]] == [2]
    assert [(row["lsn"], row["orders"]) for row in found.speed] == [(2, 1), (3, 1)]
    assert [(e["lsn"], e["offset"], e["layer"]) for e in found.events] == [
        (1, 0, "batch"),
        (1, 2, "batch"),
        (2, 3, "speed"),
        (3, 5, "speed"),
    ]
    prices = [json.loads(one["value"] or b"")["unit_price_cents"] for one in found.events]
    assert prices == [1, 3, 5, 7]
    assert (found.source.cut, found.head, found.event_count) == (1, 3, 4)


def test_a_window_names_the_records_of_all_its_panes_and_no_others(platform: Platform) -> None:
    at = [START + dt.timedelta(minutes=minute) for minute in (-1, 0, 9, 10)]
    platform.land([event("order_placed", one, colour="red", unit_price_cents=100) for one in at[:2]])
    store = published(platform)
    platform.land([event("order_placed", one, colour="red", unit_price_cents=400) for one in at[2:]])
    keys = ("colour=red", f"window_start={START.isoformat()}")
    found = why(store, platform, "average_price_sliding", *keys)
    assert [(row["orders"], row["mean_unit_price_cents"]) for row in found.answer] == [(2, 250.0)]
    assert [e["time"] for e in found.events] and [e["offset"] for e in found.events] == [1, 2]
    ends = f"window_end={(START + dt.timedelta(minutes=10)).isoformat()}"
    assert why(store, platform, "average_price_sliding", "colour=red", ends).events == found.events


def test_a_note_names_the_record_that_it_is_of(platform: Platform) -> None:
    late = {"at": START - dt.timedelta(hours=2), "event_id": "00000001-0000-4000-8000-000000000000"}
    platform.land([event("order_placed", **late), order(2), ("order_placed", b"{")])
    store = published(platform)
    platform.land([event("order_placed", **late), event("order_placed", START - dt.timedelta(hours=3))])
    platform.land([order(2), ("page_viewed", b"{")])
    found = {
        verdict: [tuple(one[name] for name in PLACE) for one in why(store, platform, *asked).events]
        for verdict, asked in {
            "late": ("late_and_rejected", "verdict=late"),
            "duplicate": ("late_and_rejected", "verdict=duplicate", "event_type=order_placed"),
            "rejected": ("late_and_rejected", "event_type=unknown", "reason=not_json"),
        }.items()
    }
    assert found == {
        "late": [("batch", 1, "order_placed", 0, 0), ("speed", 2, "order_placed", 0, 4)],
        "duplicate": [("speed", 2, "order_placed", 0, 3), ("speed", 3, "order_placed", 0, 5)],
        "rejected": [("batch", 1, "order_placed", 0, 2), ("speed", 3, "page_viewed", 0, 0)],
    }


def test_a_trailing_window_is_explained_as_of_now(platform: Platform) -> None:
    now = dt.datetime.now(dt.UTC)
    ages = (dt.timedelta(minutes=1), dt.timedelta(minutes=2), dt.timedelta(hours=1))
    platform.land([event("order_placed", now - age, store_id=3) for age in ages])
    found = why(published(platform), platform, "orders_last_8_minutes", "store_id=3")
    assert [row["orders"] for row in found.answer] == [2]
    assert [e["offset"] for e in found.events] == [0, 1]


def test_a_view_that_was_never_built_is_explained_by_speed_alone(platform: Platform) -> None:
    platform.land([event("sentence_posted", text="fox and fox"), event("sentence_posted", text="dog")])
    found = why(ledger.open(), platform, "word_count", "word=fox")
    assert found.answer == [{"word": "fox", "occurrences": 2}]
    assert not found.batch and found.publication is None
    assert [one["offset"] for one in found.events] == [0]


def test_a_sequence_shows_the_results_it_replaces_and_the_rows_that_are_deferred(platform: Platform) -> None:
    platform.land([page(0), page(10), page(0, user=8)])
    store = published(platform, horizon=START)
    platform.land([page(20), page(-300)])
    found = why(store, platform, "sessions", "user_id=7")
    assert [row["pages"] for row in found.answer] == [3]
    assert [row["pages"] for row in found.batch["results"]] == [2]
    assert len(found.batch["rows"]) == 2
    assert [one["layer"] for one in found.events] == ["batch", "batch", "speed", "before_horizon"]


def test_a_lookup_names_the_row_it_came_from(platform: Platform) -> None:
    platform.land([event("airline_changed", carrier="UA", name="United")])
    platform.land([event("flight_departed", carrier="UA", delay_minutes=5)])
    found = why(ledger.open(), platform, "delay_by_carrier_day", "carrier=UA")
    assert found.lookups == [{"column": "carrier_name", "from": "airline_names", "key": "UA", "value": "United"}]
    assert why(ledger.open(), platform, "airline_names", "carrier=UA").event_count == 1


@pytest.mark.parametrize(
    ("view", "key", "said"),
    [
        ("orders_by_dya", ["store_id=3"], "there is no view orders_by_dya; near: orders_by_day"),
        ("orders_by_day", [], "say which row of orders_by_day: store_id=... day=..."),
        ("orders_by_day", ["store=3"], "store=3: the keys of orders_by_day are store_id, day"),
        ("orders_by_day", ["store_id=three"], "'three' is not a BIGINT"),
        ("orders_by_day", ["day=yesterday"], "'yesterday' is not a DATE"),
        ("orders_by_day", ["store_id=5"], "has no row with store_id=5; near: store_id: 4, 3"),
        ("word_count", ["word=foxx"], "near: word: fox"),
        ("word_count", ["word=' OR true --"], "has no row with word=' OR true --"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_what_is_near(
    platform: Platform, view: str, key: list[str], said: str
) -> None:
    platform.land([order(1, store=3), order(2, store=4), event("sentence_posted", text="fox")])
    with pytest.raises(ExplainError) as refused:
        why(ledger.open(), platform, view, *key)
    assert said in str(refused.value)


def test_the_command_prints_every_part_and_json(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    platform.land([order(1, user_id=9), order(3)])
    published(platform)
    platform.land([order(5)])

    def views() -> Views:
        return platform.views

    monkeypatch.setattr("spark_jobs.registry.views.project_views", views)
    asked = ["explain", "orders_by_hour", "store_id=3", "--limit", "2"]
    shown = CliRunner().invoke(main, asked)
    assert shown.exit_code == 0, shown.output
    assert "batch version 0, cut 1; head 2" in shown.output
    assert "sketch of about 2 values" in shown.output
    assert "3 records behind it, the first 2:" in shown.output
    told = json.loads(CliRunner().invoke(main, [*asked, "--json"]).output)
    assert told["served"][0]["hour"] == "2026-03-01T12:00:00Z"
    assert told["records"] == 3 and len(told["first_records"]) == 2
    refused = CliRunner().invoke(main, ["explain", "nope", "a=1"])
    assert refused.exit_code == 1 and "there is no view nope" in refused.output


def test_a_row_of_a_view_over_a_view_names_the_rows_behind_it(platform: Platform) -> None:
    def at(minute: int, event_type: str, **fields: Any) -> dict[str, Any]:
        return event(event_type, START + dt.timedelta(minutes=minute), comp_id=1001, **fields)

    platform.land([at(0, "order_placed", order_id="o1", colour="red")])
    store = published(platform)
    platform.land([at(1, "order_executed", execution_id="e1", venue="x"), at(2, "order_placed", order_id="o2")])
    found = why(store, platform, "trades_by_colour", "colour=red")
    assert [row["trades"] for row in found.answer] == [1]
    assert found.below and found.below[0].name == "trades"
    assert [(row["order_id"], row["execution_id"]) for row in found.below[1]] == [("o1", "e1")]
    text = "\n".join(lines(found, 20))
    assert "1 rows of trades behind it" in text and text.endswith("tidemark explain trades comp_id=1001")
    with pytest.raises(ExplainError, match="trades_by_colour has no row with colour=green; near: colour: red"):
        why(store, platform, "trades_by_colour", "colour=green")


def test_a_score_is_explained_by_its_payment_and_by_the_model_that_was_in_force(platform: Platform) -> None:
    platform.land(
        [event("payments_model_promoted", model_version=1), event("payment_attempted", payment_id="unscored")]
    )
    platform.land([event("payments_model_promoted", model_version=2)])
    platform.land([event("payment_attempted", payment_id="built")])
    store = published(platform)
    platform.land([event("payments_model_promoted", model_version=3)])
    platform.land([event("payment_attempted", payment_id="new")])
    layers = {"unscored": ["batch"], "built": ["side input", "batch"], "new": ["side input", "speed"]}
    for name, expected in layers.items():
        found = why(store, platform, "payments_scored", f"payment_id={name}")
        assert [one["layer"] for one in found.events] == expected
    assert [json.loads(one["value"] or b"{}").get("model_version") for one in found.events] == [3, None]
    assert found.answer[0]["model_version"] == 3
