"""A schema that comes after its records: quarantine gives them back, once, and every difference has its cause."""

from itertools import count
from typing import Any

import pytest

from spark_jobs.batch import decode_step
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.rollback import rollback
from spark_jobs.quality import recompute
from spark_jobs.quality.reconciliation.agreement import agree
from spark_jobs.quality.reconciliation.causes import (
    CORRECTED,
    DUPLICATE,
    NEWER_SCHEMA,
    OUT_OF_QUARANTINE,
)
from spark_jobs.quality.verification import recompute_checks
from spark_jobs.quality.verification.findings import Skipped, State
from spark_jobs.quality.verification.scene import Scene
from spark_jobs.quality.verification.scope import refuse_facts_ahead
from spark_jobs.quality.verification.verify import checks, of_builds
from spark_jobs.serving import quarantine
from spark_jobs.settings import settings
from spark_jobs.storage import coverage, log_reader, tables
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark
VIEWS = ("word_count", "page_views_per_user_hour", "sessions", "late_and_rejected")
LATER = ("sentence_posted.v1", "page_viewed.v2")


def sentence(number: int, text: str) -> dict[str, Any]:
    return event("sentence_posted", number, text=text)


def page(number: int, minute: int) -> dict[str, Any]:
    return event("page_viewed", number, occurred_at=f"2026-01-05T09:{minute:02d}:00.000Z", user_id=7)


def words(lake: Lake) -> dict[str, int]:
    return dict(lake.ask("SELECT word, occurrences FROM word_count"))


def stands(lake: Lake) -> bool:
    """I7, a rebuild at the same cut changes nothing."""
    cut = lake.store.current_publication().cut
    return recompute_checks.facts_stand(recompute.facts(cut, cut=cut), cut).state is State.HOLDS


def causes(lake: Lake, old: dict[str, Any], changed: dict[str, Any]) -> dict[str, set[str]]:
    """View -> why its rows differ from what `old` and the speed layer say."""
    new = lake.store.sources(lake.store.current_publication())
    return {
        found.view: set(found.causes)
        for found in agree(lake.views, old, new, dict.fromkeys(new, changed))
        if found.differing
    }


def every_difference_has_its_cause(lake: Lake, old: dict[str, Any], changed: dict[str, Any]) -> None:
    since_published = causes(lake, old, changed)
    assert since_published.keys() == set(VIEWS)
    assert since_published["word_count"] == {OUT_OF_QUARANTINE}, "of the worm, and of nothing else"
    assert set().union(*since_published.values()) <= {OUT_OF_QUARANTINE, CORRECTED, DUPLICATE}
    since_ever = causes(lake, {}, {})
    assert since_ever.keys() == set(VIEWS) and set().union(*since_ever.values()) <= {NEWER_SCHEMA, DUPLICATE}


def stands_where_facts_are_ahead(lake: Lake) -> None:
    """I7 of a publication that was rolled back over a new schema."""
    rollback(lake.rows, lake.views, lake.store)
    assert words(lake) == {"late": 1, "early": 1, "bird": 1}, "as before it came in force"
    scene = Scene(lake.store, lake.views)
    stood = [check() for law, check in (*checks(scene), *of_builds(scene)) if law.invariant == "I7"]
    assert len(stood) == 1 + len(VIEWS) and stood[0].state is State.HOLDS
    assert State.BREACH not in {finding.state for finding in stood}, "the facts are ahead of what is served"
    with pytest.raises(Skipped, match="after the next publication"):
        refuse_facts_ahead(lake.store, scene.cut)


def dying_at(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded again is decoded two records at a time, and the process dies before one of these turns."""
    monkeypatch.setattr(decode_step, "settings", lambda: settings().model_copy(update={"decode_again_records": 2}))
    turns, decode = count(1), decode_step._decode

    def decode_or_die(*given: Any) -> dict[str, int]:
        if next(turns) == turn:
            raise OSError("the process dies")
        return decode(*given)

    monkeypatch.setattr(decode_step, "_decode", decode_or_die)


def test_a_schema_that_comes_after_its_records_takes_them_out_of_quarantine(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I13, quarantine loses nothing and re-admits once; I9 and I7 hold for what it gives back; I10 on the way."""
    lake.begin_without(*LATER)
    lake.use(*VIEWS)
    refused = [page(2, 0), event("order_placed", 3), b"{"]
    lake.land([sentence(1, "early bird"), sentence(7, "worm"), *refused], topic="sentence_posted")
    lake.land([page(4, 10), page(8, 15)], version=2)
    lake.land([page(4, 10)])
    ensure_serving(lake.rows, lake.views, lake.store)
    assert lake.run("r1") is not None
    assert words(lake) == {} and lake.rows(f"SELECT count(*) FROM {tables.QUARANTINE}") == [(7,)]
    lake.land([sentence(5, "late")], new_schemas=True)
    history, decoded, head = log_reader.read_schema_history(), lake.store.decoded_cut(), coverage.head()[0]
    held = quarantine.portions(quarantine.Which(), history, decoded, head)
    told = quarantine.summary(held, history, decoded, head)
    assert (sum(row["records"] for row in told), sum(row["accepted_now"] for row in told)) == (7, 4), (
        "as it is proposed"
    )
    lake.land([sentence(1, "early bird"), page(6, 20)])
    assert words(lake) == {"late": 1, "early": 1, "bird": 1}, "the speed layer knows nothing of quarantine"
    old = lake.store.sources(lake.store.current_publication())
    dying_at(2, monkeypatch)
    with pytest.raises(OSError, match="dies"):
        lake.run("r2")
    assert lake.run("r2") is not None
    assert words(lake) == {"late": 1, "early": 1, "bird": 1, "worm": 1}, "of what is repeated the first counts"
    assert lake.ask("SELECT sum(page_views) FROM page_views_per_user_hour") == [(3,)]
    assert lake.ask("SELECT pages FROM sessions") == [(3,)]
    noted = "SELECT verdict, sum(records) FROM late_and_rejected WHERE verdict <> 'late' GROUP BY verdict"
    assert lake.ask(noted) == [("duplicate", 2), ("rejected", 3)]
    assert lake.rows(f"SELECT count(*) FROM {tables.QUARANTINE}") == [(3,)]
    assert stands(lake)
    summary = lake.store.runs()[0].summary
    assert summary["decoded_again"] == [[1, 3]]
    assert summary["decoded_again_up_to"] == 2
    assert len([line for line in lake.lines if line.startswith("decoded lsn BETWEEN 1 AND 1:")]) == 1, "and not again"
    every_difference_has_its_cause(lake, old, summary["changed_days"])
    stands_where_facts_are_ahead(lake)
