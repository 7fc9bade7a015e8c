"""Views over views: what is refused, and what they are made of."""

from pathlib import Path

import pytest

from spark_jobs.registry.views import RegistryError
from tests.unit.test_view_files import aggregate, load


def over(**changed: str) -> str:
    """Over the view `base`, of `paid`, by card."""
    arguments = {"over": '"base"', "by": '{"card": "card"}', "measures": '{"cards": Count()}', **changed}
    stated = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f'view = Aggregate({stated}, owner="o", description="d")'


OVER = {
    "of nothing": (aggregate(of="()"), "an Aggregate of nothing", "in `over`"),
    "over nothing": (over(over='"nothing"'), "no view nothing to be over", "known are base"),
    "over itself": (over(over='"payments"'), "payments are over each other", "a view of events"),
    "over a view and of events": (over(of='"paid"'), "has `of`", "leave it out"),
    "a version of a view over a view": (over(version="2"), "has a version", "in place"),
    "a window over a view": (
        over(window='Trailing(size="2 hours", every="1 hour")'),
        "has `window`",
        "put it into base",
    ),
    "a column that the other lacks": (over(by='{"c": "cents"}'), "key c: `cents`: unknown column", "payments"),
    "an event's field over a view": (over(by='{"t": "occurred_at"}'), "unknown column occurred_at", "asked_at"),
    "an order over a view": (over(measures='{"x": Last("payments")}'), "Last over a view", "no order"),
    "a sketch over a view": (over(measures='{"x": ApproxDistinct("card")}'), "ApproxDistinct over a view", "no order"),
    "what can fail over a view": (
        over(measures='{"x": Sum("payments * payments")}'),
        "`payments * payments` can fail",
        "try_multiply",
    ),
    "the moment as a column": (over(over='"timed"'), "timed has a column asked_at", "rename it"),
}


@pytest.mark.parametrize(("text", "reason", "hint"), OVER.values(), ids=OVER)
def test_a_wrong_view_over_a_view_is_refused(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    timed = aggregate(by='{"asked_at": "card"}')
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, base=aggregate(), timed=timed, payments=text)
    assert refused.value.file.endswith("payments.py")
    assert reason in refused.value.reason
    assert hint in refused.value.hint


def test_a_view_over_a_view_over_a_view_has_the_events_of_the_lowest(tmp_path: Path) -> None:
    upper = over(over='"middle"', by='{"many": "cards > 1"}', measures='{"n": Count()}')
    views = load(tmp_path, a_upper=upper, middle=over(), base=aggregate())
    assert [view.id for view in views] == ["base"] and [view.id for view in views.over] == ["middle", "a_upper"]
    assert views.served["a_upper"].event_types == ("paid",)
