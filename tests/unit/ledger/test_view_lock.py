"""A changed view without a new version is refused, with the difference; what does not decide its numbers may change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.measures.exact import Count, Sum
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.ledger.view_lock import ViewChanged
from spark_jobs.registry.views import Views, event_types_of, project_views

DECLARED = Aggregate(
    of="order_placed",
    by={"store_id": "store_id"},
    measures={"orders": Count(), "pieces": Sum("quantity")},
    owner="tests",
    description="orders per store",
)


def views(**changed: Any) -> Views:
    declared = replace(DECLARED, **changed)
    name = "orders"
    return Views((bind_aggregate(name, declared, event_types_of(project_contracts())),))


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"measures": {"orders": Count(), "pieces": Sum("quantity + 1")}},
         ["-view.measures[pieces].of: quantity", "+view.measures[pieces].of: quantity + 1"]),
        ({"where": "quantity > 1"}, ["+view.where: quantity > 1"]),
        ({"measures": {"orders": Count(where="quantity > 1"), "pieces": Sum("quantity")}},
         ["+view.measures[orders].where: quantity > 1"]),
    ],
)  # fmt: skip
def test_what_decides_the_numbers_is_refused_with_the_difference(
    platform_home: Path, changed: dict[str, Any], lines: list[str]
) -> None:
    store = ledger.open()
    view_lock.check(store, views())
    with pytest.raises(ViewChanged) as refused:
        view_lock.check(store, views(**changed))
    first, *difference = str(refused.value).splitlines()
    assert first.startswith("orders has changed, but is still version 1") and "orders_v2.py beside it" in first
    assert [line for line in difference if line[0] in "+-" and line[:3] not in ("+++", "---")] == lines
    view_lock.check(store, views())  # nothing was written down


def test_words_for_people_and_a_new_version_may_come(platform_home: Path) -> None:
    store = ledger.open()
    view_lock.check(store, views())
    view_lock.check(store, views(description="how many orders a store has", owner="others"))
    view_lock.check(store, views(version=2, where="quantity > 1"))
    assert store.view_texts().keys() == {"orders", "orders_v2"}


def test_the_same_sequence_on_other_lines_is_the_same(platform_home: Path) -> None:
    sessions = project_views()["sessions"]
    resolve = (sessions.declaration.resolve or "").replace("    ", "  ")
    moved = replace(sessions, declaration=replace(sessions.declaration, resolve=resolve))
    assert resolve != sessions.declaration.resolve
    assert view_lock.text_of(moved) == view_lock.text_of(sessions)


def test_the_batch_layer_plans_nothing_for_a_changed_view(platform_home: Path) -> None:
    store = ledger.open()
    store.define({"sessions": "view: Aggregate\n"})
    with pytest.raises(ViewChanged, match="sessions has changed"):
        view_lock.check(store, project_views())
    assert store.view_texts() == {"sessions": "view: Aggregate\n"}
