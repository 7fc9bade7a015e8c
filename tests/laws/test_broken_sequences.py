"""The laws of sequence views can see: each of these wrong rules and wrong views is caught by one of them."""

import pytest

from spark_jobs.definitions.bound_view import FOREVER
from tests.laws.sequence_cases import connection
from tests.laws.sequence_views import MINUTE, SUBJECTS
from tests.laws.test_sequences import (
    CASES,
    division_differs,
    not_quiet_in_prefix,
    oracle_differs,
    quiet_cases,
    served_differs,
)

TOUCHED = "JOIN (SELECT key, min(ts) AS s0 FROM fresh GROUP BY key) t ON r.key = t.key AND"
BROKEN_RULES = {
    "half-open ends when replaying": ("stretch_end >= t.s0", "stretch_end > t.s0"),
    "half-open ends when merging stretches": ("span_start <= max(span_end)", "span_start < max(span_end)"),
    "a stretch ends with the interval that ends first": ("max(span_end) AS", "min(span_end) AS"),
    "what begins a stretch is of the one before": (">= e.begins_at", "> e.begins_at"),
    "only what is open goes over the cut": ("stretch_end >= t.s0", f"stretch_end = {FOREVER}"),
    "rows replayed by their own times": (f"SEMI {TOUCHED} r.stretch_end", f"SEMI {TOUCHED} r.ts"),
    "results dropped by their own ends": (f"ANTI {TOUCHED} r.stretch_end", f"ANTI {TOUCHED} r.closes_at"),
    "from the last new row on": ("min(ts) AS s0", "max(ts) AS s0"),
    "results do not lengthen a stretch": ("closes_at AS span_end", "opened_at AS span_end"),
}


@pytest.mark.parametrize("broken", BROKEN_RULES.values(), ids=list(BROKEN_RULES))
def test_the_laws_catch_a_broken_rule(broken: tuple[str, str]) -> None:
    assert any(served_differs(connection(one, 1, 20_000), one, broken) for one in SUBJECTS.values())


def test_the_laws_catch_intervals_of_results_alone() -> None:
    subject = SUBJECTS["payments_flagged"]
    with connection(subject, 1, 20_000) as con:
        assert served_differs(con, subject, ("ts + CASE kind WHEN 'payment' THEN 600000000 END", "ts"))


def test_the_laws_catch_stored_rows_cut_off_at_the_horizon() -> None:
    assert any(served_differs(connection(one, 1, 20_000), one, kept="r.ts >= c.horizon") for one in SUBJECTS.values())


def test_the_laws_catch_a_carried_row_that_ends_at_its_own_time() -> None:
    subject = SUBJECTS["page_views_by_zip"]
    ends = "coalesce(lead(ts) OVER (PARTITION BY key, kind ORDER BY ts, tie), 9223372036854775807)"
    with connection(subject, 1, 20_000) as con:
        assert served_differs(con, subject, (ends, "ts"))


def test_the_laws_catch_a_reach_that_is_too_short() -> None:
    """`resolve` looks half an hour ahead, but says that a showing matters for half as long."""
    subject = SUBJECTS["ad_click_through"].with_reach("shown", "15 minutes")
    shorter = subject.with_resolve("{shown_reach}", str(30 * MINUTE)).with_resolve(
        f"CASE WHEN kind = 'shown' THEN ts + {30 * MINUTE} ELSE ts END AS closes_at", "ts AS closes_at"
    )
    with connection(shorter, 1, CASES) as con:
        assert served_differs(con, shorter)


def test_the_laws_catch_a_dimension_that_is_not_carried() -> None:
    subject = SUBJECTS["bus_speed"].with_reach("previous", "0 seconds")
    with connection(subject, 1, CASES) as con:
        assert served_differs(con, subject)


def test_the_laws_catch_the_end_of_the_session_before() -> None:
    """Each session says when its user was last seen: what is quiet does not divide that."""
    subject = SUBJECTS["sessions"].with_resolve(
        "min(ts) AS started_at", "lag(max(ts)) OVER (PARTITION BY key ORDER BY number) AS started_at"
    )
    with connection(subject, 1, CASES) as con:
        assert division_differs(con, subject, quiet_cases(con, subject, "r.ts < c.instant"))


def test_the_laws_catch_patterns_that_exclude_each_other() -> None:
    """Every third payment of a card, counted from the first: greedy, so that each hit shifts the later ones."""
    subject = SUBJECTS["payments_flagged"].with_resolve(
        "count(*) OVER minute AS attempts",
        "(row_number() OVER (PARTITION BY key ORDER BY ts, tie) - 1) % 3 + 1 AS attempts",
    )
    with connection(subject, 1, CASES) as con:
        assert division_differs(con, subject, quiet_cases(con, subject, "r.ts < c.instant"))


def test_the_oracle_catches_an_order_that_is_not_total() -> None:
    """Where a view and a profile have one instant, only the place in the log tells which came first."""
    subject = SUBJECTS["page_views_by_zip"].with_resolve("ORDER BY ts, tie) AS number", "ORDER BY ts) AS number")
    with connection(subject, 1, CASES) as con:
        assert oracle_differs(con, subject)


def test_the_laws_catch_trades_without_superseded_rows() -> None:
    subject = SUBJECTS["trades"].with_resolve("FROM waited", "FROM waited WHERE status <> 'superseded'")
    with connection(subject, 1, 20_000) as con:
        assert served_differs(con, subject)
        assert not_quiet_in_prefix(con, subject)


def test_the_laws_catch_an_ordinal_per_key() -> None:
    subject = SUBJECTS["sessions"].with_resolve("count(*) AS pages", "number AS pages")
    with connection(subject, 1, CASES) as con:
        assert division_differs(con, subject, quiet_cases(con, subject, "r.ts < c.instant"))
        assert served_differs(con, subject)


def test_the_oracle_catches_a_wrong_opening() -> None:
    subject = SUBJECTS["sessions"].with_resolve("min(ts) AS opened_at", "max(ts) AS opened_at")
    with connection(subject, 1, CASES) as con:
        assert oracle_differs(con, subject)
