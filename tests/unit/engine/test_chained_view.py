"""Chained views: what is refused, and what they are made of."""

from pathlib import Path

import pytest

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.registry.views import RegistryError, event_types_of, load_views
from spark_jobs.testing import cases
from tests.unit.registry.test_views import HEAD, aggregate, load


def chained(**changed: str) -> str:
    """The text of a chained view over the view `base`, by card."""
    arguments = {"of_view": '"base"', "by": '{"card": "card"}', "measures": '{"cards": Count()}', **changed}
    stated = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f'view = Aggregate({stated}, owner="o", description="d")'


WRONG = {
    "of no event": (aggregate(of="()"), "an Aggregate of nothing", "in `of_view`"),
    "made of nothing": (chained(of_view='"nothing"'), "no view nothing", "known are base"),
    "made of itself": (chained(of_view='"payments"'), "payments are made of each other", "made of events"),
    "in a chained view and of events": (chained(of='"paid"'), "has `of`", "leave it out"),
    "a version of a chained view": (chained(version="2"), "has a version", "in place"),
    "a window in a chained view": (
        chained(window='Trailing(size="2 hours", every="1 hour")'),
        "has `window`",
        "put it into base",
    ),
    "a column that the other lacks": (chained(by='{"c": "cents"}'), "key c: `cents`: unknown column", "payments"),
    "an event's field": (
        chained(by='{"t": "occurred_at"}'),
        "unknown column occurred_at",
        "asked_at",
    ),
    "an order in a chained view": (chained(measures='{"x": Last("payments")}'), "Last in a chained view", "no order"),
    "a sketch": (
        chained(measures='{"x": ApproxDistinct("card")}'),
        "ApproxDistinct in a chained view",
        "no order",
    ),
    "what can fail in a chained view": (
        chained(measures='{"x": Sum("payments * payments")}'),
        "`payments * payments` can fail",
        "try_multiply",
    ),
    "the moment as a column": (chained(of_view='"timed"'), "timed has a column asked_at", "rename it"),
}


@pytest.mark.parametrize(("text", "reason", "hint"), WRONG.values(), ids=WRONG)
def test_a_wrong_chained_view_is_refused(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    timed = aggregate(by='{"asked_at": "card"}')
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, base=aggregate(), timed=timed, payments=text)
    assert refused.value.file.endswith("payments.py")
    assert reason in refused.value.reason
    assert hint in refused.value.hint


def test_a_chained_view_of_a_chained_view_has_the_events_of_the_lowest(tmp_path: Path) -> None:
    upper = chained(of_view='"middle"', by='{"many": "cards > 1"}', measures='{"n": Count()}')
    views = load(tmp_path, a_upper=upper, middle=chained(), base=aggregate())
    assert [view.id for view in views] == ["base"] and [view.id for view in views.chained] == ["middle", "a_upper"]
    assert views.served["a_upper"].event_types == ("paid",)


def test_e_the_rows_of_an_answer_have_a_greatest_one(tmp_path: Path) -> None:
    """No order of facts is needed: of two stores with as many orders the greater number is served."""
    stores = aggregate(of='"order_placed"', by='{"store_id": "store_id"}', measures='{"orders": Count()}')
    best = chained(
        by='{"one": "1"}', measures='{"best": MaxBy("store_id", "orders"), "least": MinBy("store_id", "orders")}'
    )
    for name, text in {"base": stores, "best": best}.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    views = load_views(tmp_path, event_types_of(project_contracts()))
    orders = [[{"order_placed": {"store_id": store}} for store in (1, 2, 2, 3, 3)]]
    assert cases.answer(views.served["best"], views, {}, cases.facts(orders)) == [{"one": 1, "best": 3, "least": 1}]
