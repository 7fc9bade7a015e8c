"""The sequence views under law: those of the project, and two kinds that the project has no view of yet.

`Subject`: a view, its oracle, and a grid of times on which its edges (an end that is met exactly) are frequent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spark_jobs import registry
from spark_jobs.binding import bind_sequence
from spark_jobs.view import EventShape, Row, SequenceView
from spark_jobs.view import Sequence as Declared
from tests.laws import sequence_oracles as oracles

SECOND, MINUTE = 1_000_000, 60_000_000
SHAPES = {
    "viewed": EventShape({"user_id": "BIGINT", "url": "STRING"}),
    "profile_set": EventShape({"user_id": "BIGINT", "name": "STRING"}),
    "paid": EventShape({"card": "BIGINT", "country": "STRING"}),
}

NAMES_AS_OF = Declared(
    key="user_id",
    rows={
        "profile": Row(of="profile_set", key="user_id", reach=None, carried=True, columns={"name": "name"}),
        "page": Row(of="viewed", key="user_id", reach="0 seconds", columns={"url": "url"}),
    },
    resolve="""
        WITH numbered AS (SELECT *, count(CASE WHEN kind = 'profile' THEN 1 END)
                              OVER (PARTITION BY key ORDER BY ts, tie) AS number FROM {rows}),
        known AS (SELECT *, max(CASE WHEN kind = 'profile' THEN name END) OVER (PARTITION BY key, number) AS name_then
                  FROM numbered)
        SELECT key, ts AS opened_at, ts AS closes_at, url, name_then FROM known WHERE kind = 'page'""",
    results={"url": "STRING", "name_then": "STRING"},
    owner="tests",
    description="Page views with the viewer's name as of the view.",
)

THREE_IN_A_MINUTE = Declared(
    key="card",
    rows={"payment": Row(of="paid", key="card", reach="60 seconds", columns={"country": "country"})},
    resolve="""
        WITH counted AS (SELECT *, count(*) OVER w AS attempts, min(country) OVER w AS a, max(country) OVER w AS b
            FROM {rows} WINDOW w AS (PARTITION BY key ORDER BY ts
                RANGE BETWEEN {payment_reach} PRECEDING AND CURRENT ROW))
        SELECT key, ts AS opened_at, ts AS closes_at, attempts FROM counted WHERE attempts >= 3 AND a <> b""",
    results={"attempts": "BIGINT"},
    owner="tests",
    description="Three payments within a minute in two countries.",
)


@dataclass(frozen=True)
class Subject:
    """values: column -> what the generator may put there, for the row kinds that have it."""

    view: SequenceView
    oracle: oracles.Oracle
    step: int
    steps: int
    values: Mapping[str, Sequence[str | None]]

    def with_resolve(self, old: str, new: str) -> "Subject":
        """The same with other text in `resolve`; for views that are wrong on purpose."""
        declared = self.view.declaration
        assert declared.resolve is not None and old in declared.resolve
        changed = replace(declared, resolve=declared.resolve.replace(old, new))
        return replace(self, view=replace(self.view, declaration=changed))


def _loaded(name: str) -> SequenceView:
    view = registry.views()[name]
    assert isinstance(view, SequenceView)
    return view


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
    "names_as_of": Subject(
        bind_sequence("names_as_of", "tests", NAMES_AS_OF, SHAPES),
        oracles.names_as_of,
        SECOND,
        9,
        {"url": LETTERS, "name": (*LETTERS, None)},
    ),
    "three_in_a_minute": Subject(
        bind_sequence("three_in_a_minute", "tests", THREE_IN_A_MINUTE, SHAPES),
        oracles.three_in_a_minute,
        10 * SECOND,
        20,
        {"country": ("de", "fr")},
    ),
}
