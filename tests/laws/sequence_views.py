"""The project's sequence views under law.

`Subject`: a view, its oracle, and a grid of times on which its edges (an end that is met exactly) are frequent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions import spec
from spark_jobs.definitions.binder import bind_sequence
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.definitions.inner_join import sequence_of
from spark_jobs.registry.views import event_types_of, project_views
from tests.laws import sequence_oracles as oracles

SECOND, MINUTE = 1_000_000, 60_000_000
Values = Sequence[str | int | float | None]


@dataclass(frozen=True)
class Subject:
    """values: column, or kind.column -> what the generator may put there, for the row kinds that have it."""

    view: SequenceView
    oracle: oracles.Oracle
    step: int
    steps: int
    values: Mapping[str, Values]

    def with_resolve(self, old: str, new: str) -> "Subject":
        """The same with other text in `resolve`; for views that are wrong on purpose."""
        return replace(self, view=with_resolve(self.view, old, new))

    def with_reach(self, kind: str, reach: str) -> "Subject":
        """The same with another reach of one kind, that is not carried."""
        return replace(self, view=with_reach(self.view, kind, reach))


def with_resolve(view: SequenceView, old: str, new: str) -> SequenceView:
    text = view.declaration.resolve or ""
    assert old in text
    return _bound(view, replace(view.declaration, resolve=text.replace(old, new)))


def with_reach(view: SequenceView, kind: str, reach: str) -> SequenceView:
    rows = view.declaration.rows
    return _bound(view, replace(view.declaration, rows={**rows, kind: replace(rows[kind], reach=reach, carried=False)}))


def _bound(view: SequenceView, declared: spec.Sequence) -> SequenceView:
    return bind_sequence(view.name, declared, view.event_columns)


def _loaded(name: str) -> SequenceView:
    view = project_views()[name]
    assert isinstance(view, SequenceView)
    return view


def _joined() -> SequenceView:
    """A short form, written out, with a changelog on the left."""
    sides = {"left": spec.Side(of="profile_changed", key="user_id", columns={"name": "name"}),
             "right": spec.Side(of="ad_clicked", key="user_id", columns={"ad_id": "ad_id"})}  # fmt: skip
    join = spec.InnerJoin(key="user_id", **sides, owner="tests", description="a law")
    types = event_types_of(project_contracts())
    return bind_sequence("joined", sequence_of(join, types), types)


LETTERS = ("a", "b", "c")
SUBJECTS = {
    "sessions": Subject(_loaded("sessions"), oracles.sessions, 10 * MINUTE, 16, {"url": LETTERS}),
    "trades": Subject(
        _loaded("trades"),
        oracles.trades,
        SECOND,
        9,
        {"order_id": LETTERS, "colour": LETTERS, "execution_id": LETTERS, "venue": LETTERS},
    ),
    "aircraft_turnarounds": Subject(
        _loaded("aircraft_turnarounds"),
        oracles.turnarounds,
        MINUTE // 2,
        9,
        {"arrived_with": LETTERS, "airport": LETTERS, "departed_with": LETTERS, "next_airport": LETTERS},
    ),
    "page_views_by_zip": Subject(
        _loaded("page_views_by_zip"), oracles.page_views_by_zip, SECOND, 9, {"url": LETTERS, "zip": (*LETTERS, None)}
    ),
    "clicks_with_user_name": Subject(
        _loaded("clicks_with_user_name"),
        oracles.clicks_with_user_name,
        SECOND,
        9,
        {"name": (*LETTERS, None), "ad_id": LETTERS, "impression_id": LETTERS},
    ),
    "departures_with_weather": Subject(
        _loaded("departures_with_weather"),
        oracles.departures_with_weather,
        40 * MINUTE,
        9,
        {
            "temp_f": (1.5, 32.0, None),
            "wind_mph": (2.5, None),
            "visibility_miles": (10.0, None),
            "flight_id": LETTERS,
            "delay_minutes": (-1, 7),
        },
    ),
    "an inner join": Subject(
        _joined(),
        oracles.inner_join,
        SECOND,
        9,
        {"name": (*LETTERS, None), "is_there": (True, False), "ad_id": LETTERS},
    ),
    "search_click_through": Subject(
        _loaded("search_click_through"),
        oracles.search_click_through,
        20 * MINUTE,
        16,
        {"search_id": LETTERS[:2], "query": LETTERS},
    ),
    "ad_click_through": Subject(
        _loaded("ad_click_through"), oracles.ad_click_through, 10 * MINUTE, 16, {"ad_id": LETTERS}
    ),
    "payments_flagged": Subject(
        _loaded("payments_flagged"),
        oracles.payments_flagged,
        20 * SECOND,
        120,
        {"payment_id": LETTERS, "amount_cents": (500, 501, 49_999, 50_000), "country": ("DE", "FR")},
    ),
    "order_state": Subject(
        _loaded("order_state"),
        oracles.order_state,
        SECOND,
        9,
        {"command_id": LETTERS, "action": ("place", "change", "cancel"), "fact.action": ("placed",)},
    ),
    "bus_speed": Subject(
        _loaded("bus_speed"),
        oracles.bus_speed,
        100 * SECOND,
        9,
        {"line": LETTERS, "lat": (47.04, 47.05, 47.0625), "lon": (8.29, 8.3, 8.3125)},
    ),
}
