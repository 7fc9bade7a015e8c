"""Corrections by hand on a whole platform: retracted, superseded, readmitted; served after the next run, verified."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.runs import ENDED, moment, order, send, state_of, trigger_batch_layer
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault, pytest.mark.timeout(1800)]

STORE, OTHER = 5_711, 5_712


def served(platform: Platform) -> dict[int, int]:
    query = f"SELECT store_id, sum(orders) FROM serving.orders_by_day WHERE store_id IN ({STORE}, {OTHER}) GROUP BY 1"
    return dict(platform.sql(query))


def quarantined(platform: Platform) -> list[dict[str, Any]]:
    chosen = ("--topic", "order_placed", "--because", "missing_field", "--field", "store_id")
    found: list[dict[str, Any]] = json.loads(platform.tidemark("quarantine", "list", *chosen, "--json"))
    return found


def test_what_somebody_says_of_records_counts_after_the_next_run(platform: Platform, tmp_path: Path) -> None:
    taken_back, corrected, wrong = (json.loads(order(occurred_at=moment(), store_id=STORE)) for _ in range(3))
    wrong["shop"] = wrong.pop("store_id")
    send(platform, tmp_path, *map(json.dumps, (taken_back, corrected, wrong)))
    await_true(lambda: served(platform) == {STORE: 2}, 60, "the orders do not count")
    await_true(lambda: [row["records"] for row in quarantined(platform)] == [1], 60, "it is not in quarantine", every=2)
    because = ("--reason", "a test", "--by", "ada")
    mended = tmp_path / "mended.json"
    mended.write_text(json.dumps({**corrected, "store_id": OTHER}))
    platform.tidemark("retract", "order_placed", taken_back["event_id"], *because)
    platform.tidemark("supersede", "order_placed", corrected["event_id"], "--file", str(mended), *because)
    rule = ("--because", "missing_field", "--field", "store_id", "--rename", "shop=store_id")
    assert "readmit: 1 records" in platform.tidemark("quarantine", "readmit", *rule, *because)
    assert served(platform) == {STORE: 2}, "readers see it from the next publication on"
    run = trigger_batch_layer(platform)
    await_true(lambda: state_of(platform, run) in ENDED, 900, f"{run} does not end", every=2)
    assert state_of(platform, run) == "success"
    assert served(platform) == {STORE: 1, OTHER: 1}
    assert quarantined(platform) == []
    send(platform, tmp_path, json.dumps(taken_back))
    day = corrected["occurred_at"][:10]
    told = platform.tidemark("explain", "orders_by_day", f"store_id={OTHER}", f"day={day}")
    assert "revision" in told and str(STORE) in told, "what was sent, and what is read"
    assert platform.tidemark("verify")
    assert served(platform) == {STORE: 1, OTHER: 1}, "what repeats a retracted fact does not count"
