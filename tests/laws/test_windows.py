"""Windows over panes give what counting each window's events gives, for every cut between batch and speed."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.measures.exact import Count, CountDistinct, Last, Max, MaxBy, Mean, MinBy, Sum
from spark_jobs.definitions.spec import Aggregate, Hopping, Top, Trailing, Window
from spark_jobs.registry.views import Views, event_types_of
from spark_jobs.testing import cases
from tests.depth import examples

START = datetime(2026, 1, 5, 23, 59, 40, tzinfo=UTC)  # just before midnight
MEASURES = {
    "orders": Count(),
    "large": Count(where="quantity > 2"),
    "pieces": Sum("quantity"),
    "most": Max("quantity"),
    "mean": Mean("quantity"),
    "buyers": CountDistinct("user_id"),
    "newest": Last("quantity"),
    "buyer_of_most": MaxBy("user_id", by="quantity"),
    "least_at_first": MinBy("quantity", by="occurred_at"),
}
# Seconds after START, store, quantity, buyer: a small grid, so that edges are hit.
ORDERS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 2), st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=6
    ),
    min_size=1,
    max_size=4,
)
PANES = st.sampled_from([1, 2, 5, 20])
COUNTS = st.integers(1, 4)
HALF_SECONDS = st.integers(0, 120)


def view_of(window: Window | None, top: Top | None = None, **measures: Any) -> AggregateView:
    declared = Aggregate(
        of="order_placed",
        by={"store_id": "store_id"},
        measures=measures or MEASURES,
        window=window,
        top=top,
        owner="tests",
        description="a law",
    )
    return bind_aggregate("law", declared, event_types_of(project_contracts()))


def facts_of(orders: list[list[tuple[int, int, int, int]]]) -> cases.Facts:
    batches = [
        [
            {
                "order_placed": {
                    "store_id": store,
                    "quantity": quantity,
                    "user_id": buyer,
                    "event_id": f"{lsn:08d}-{place:04d}-4000-8000-000000000000",
                    "occurred_at": START + timedelta(seconds=second),
                }
            }
            for place, (second, store, quantity, buyer) in enumerate(batch)
        ]
        for lsn, batch in enumerate(orders)
    ]
    return cases.facts(batches)


def counted(orders: list[tuple[int, int, int, int]], store: int) -> dict[str, Any]:
    """The measures over the orders of one store and window, in the order of arrival."""
    quantities = [quantity for _, _, quantity, _ in orders]
    newest = max(range(len(orders)), key=lambda place: (orders[place][0], place))
    return {
        "store_id": store,
        "orders": len(orders),
        "large": sum(quantity > 2 for quantity in quantities),
        "pieces": sum(quantities),
        "most": max(quantities),
        "mean": sum(quantities) / len(quantities),
        "buyers": len({buyer for *_, buyer in orders}),
        "newest": quantities[newest],
        "buyer_of_most": max((quantity, buyer) for _, _, quantity, buyer in orders)[1],
        "least_at_first": min((second, quantity) for second, _, quantity, _ in orders)[1],
    }


def held(view: AggregateView, orders: list[list[tuple[int, int, int, int]]], expected: list[dict[str, Any]],
         now: datetime | None = None) -> None:  # fmt: skip
    """The answer is `expected` from speed alone, from batch alone, and merged."""
    facts = facts_of(orders)
    for cut in sorted({0, len(orders) // 2, len(orders)}):
        built, new = cases.until(facts, cut)
        found = cases.answer(view, Views((view,)), built, new, now)
        assert found == cases.in_order(expected), f"cut {cut}"


@settings(max_examples=examples(15))
@given(ORDERS, PANES, COUNTS)
def test_each_hopping_window_counts_the_events_between_its_ends(
    orders: list[list[tuple[int, int, int, int]]], every: int, panes: int
) -> None:
    size, flat = every * panes, [order for batch in orders for order in batch]
    first = int(START.timestamp())
    starts = {(first + second) // every * every - back * every for second, *_ in flat for back in range(panes)}
    expected = []
    for store in (1, 2):
        for start in starts:
            inside = [one for one in flat if one[1] == store and start <= first + one[0] < start + size]
            if inside:
                ends = {"window_start": instant(start), "window_end": instant(start + size)}
                row = counted(inside, store)
                expected.append({"store_id": row.pop("store_id"), **ends, **row})
    held(view_of(Hopping(size=f"{size} seconds", every=f"{every} seconds")), orders, expected)


@settings(max_examples=examples(15))
@given(ORDERS, PANES, COUNTS, HALF_SECONDS)
def test_a_trailing_window_counts_the_current_pane_and_those_before_it(
    orders: list[list[tuple[int, int, int, int]]], every: int, panes: int, after: int
) -> None:
    now, flat = START + timedelta(seconds=after / 2), [order for batch in orders for order in batch]
    current = int(now.timestamp()) // every * every
    first = int(START.timestamp())
    expected = []
    for store in (1, 2):
        begin, end = current - (panes - 1) * every, current + every
        inside = [one for one in flat if one[1] == store and begin <= first + one[0] < end]
        if inside:
            expected.append(counted(inside, store))
    held(view_of(Trailing(size=f"{every * panes} seconds", every=f"{every} seconds")), orders, expected, now)


@settings(max_examples=examples(8))
@given(ORDERS, st.integers(1, 3))
def test_the_top_is_the_head_of_the_sorted_windows(orders: list[list[tuple[int, int, int, int]]], k: int) -> None:
    """By pieces, the most first; equal ones by store and window; per window, and in all."""
    window = Hopping(size="40 seconds", every="20 seconds")
    pieces = {"pieces": Sum("quantity")}
    whole = cases.answer(plain := view_of(window, **pieces), Views((plain,)), {}, facts_of(orders))
    by_lead = sorted(whole, key=lambda row: (-row["pieces"], row["store_id"], row["window_start"]))
    held(view_of(window, Top(k=k, by="pieces"), **pieces), orders, [
        {**row, "rank": rank} for rank, row in enumerate(by_lead[:k], 1)
    ])  # fmt: skip
    lists = {
        start: [row for row in by_lead if row["window_start"] == start] for start in {r["window_start"] for r in whole}
    }
    held(view_of(window, Top(k=k, by="pieces", per=("window_start",)), **pieces), orders, [
        {**row, "rank": rank} for rows in lists.values() for rank, row in enumerate(rows[:k], 1)
    ])  # fmt: skip


@settings(max_examples=examples(8))
@given(ORDERS, st.integers(1, 3))
def test_e_a_top_that_keeps_ties_has_all_that_are_as_great_as_the_last(
    orders: list[list[tuple[int, int, int, int]]], k: int
) -> None:
    """A rank is one more than there are greater ones, so that the next after two equal ones is two more."""
    window = Hopping(size="40 seconds", every="20 seconds")
    pieces = {"pieces": Sum("quantity")}
    whole = cases.answer(plain := view_of(window, **pieces), Views((plain,)), {}, facts_of(orders))
    ranked = [{**row, "rank": 1 + sum(other["pieces"] > row["pieces"] for other in whole)} for row in whole]
    held(view_of(window, Top(k=k, by="pieces", ties="keep"), **pieces), orders, [
        row for row in ranked if row["rank"] <= k
    ])  # fmt: skip


def instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
