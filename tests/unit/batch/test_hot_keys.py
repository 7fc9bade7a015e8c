"""A key whose stretch goes on too long waits for builds: named, with its cause, and nobody else's answer is older."""

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spark_jobs.batch.hot_keys import hot_keys
from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Build, Run
from spark_jobs.ledger.source import Source
from spark_jobs.quality import hot_key_notices
from spark_jobs.quality.reconciliation.agreement import HOT_KEY, agree
from spark_jobs.registry.views import project_views
from spark_jobs.serving import lineage
from spark_jobs.serving.local_answer import LocalAnswers
from tests.local_platform import START, Platform, event

BOT, MOST = 7, 20
VIEWS = ("sessions", "trades", "payments_flagged")


def visits(user: int, first: int, until: int) -> list[dict[str, Any]]:
    """A page a minute."""
    return [event("page_viewed", START + timedelta(minutes=n), user_id=user, url=f"/{n}") for n in range(first, until)]


@pytest.fixture
def platform(platform_home: Any) -> Platform:
    """A bot and two people, who left: one early, one now."""
    made = Platform(VIEWS)
    made.land([*visits(BOT, 0, 30), *visits(1, 28, 30), *visits(2, -90, MOST - 90), event("order_placed", START)])
    return made


def built(platform: Platform) -> dict[str, Source]:
    """As published, with the keys that are hot in it."""
    sources = platform.build()
    named = {view.id: hot_keys(view, sources[view.id].batch_version or 0, MOST) for view in platform.views}
    return {
        view_id: replace(source, hot_keys=tuple(k.digest for k in named[view_id]))
        for view_id, source in sources.items()
    }


def pages(platform: Platform, sources: dict[str, Source]) -> dict[int, int]:
    merged = LocalAnswers(platform.views, sources, platform.lsn)
    answer = merged.answer(platform.views["sessions"])
    return dict(merged.con.sql(f"SELECT user_id, sum(pages)::BIGINT FROM ({answer}) GROUP BY ALL").fetchall())


def test_only_what_is_long_and_goes_on_is_hot(platform: Platform) -> None:
    sources = platform.build()
    version = sources["sessions"].batch_version or 0
    (one,) = hot_keys(platform.views["sessions"], version, MOST)
    assert (one.view_id, one.batch_version, one.key, one.row_count) == ("sessions", version, str(BOT), 30)
    assert {key.key for key in hot_keys(platform.views["sessions"], version, MOST - 1)} == {"7"}, "2 left long ago"
    assert hot_keys(platform.views["sessions"], version, 30) == []
    assert all(hot_keys(platform.views[name], sources[name].batch_version or 0, MOST) == [] for name in VIEWS[1:])


def test_a_hot_key_is_served_as_of_its_build_and_all_others_at_once(platform: Platform) -> None:
    before = platform.build(), built(platform)
    platform.land([*visits(BOT, 30, 40), *visits(1, 30, 33), *visits(3, 30, 32)])
    free, held = (pages(platform, sources) for sources in before)
    assert free == {BOT: 40, 1: 5, 2: 20, 3: 2}
    assert held == free | {BOT: 30}
    assert pages(platform, built(platform)) == free, "the next build has it all"


def test_agreement_knows_why_a_hot_key_differs(platform: Platform) -> None:
    old = built(platform)
    platform.land([*visits(BOT, 30, 40), *visits(1, 30, 33)])
    found = {one.view: one for one in agree(platform.views, old, platform.build(), {})}
    assert found["sessions"].causes == {HOT_KEY: 1}
    assert not found["trades"].differing


def test_explain_says_which_records_wait(platform: Platform) -> None:
    sources = built(platform)
    platform.land([*visits(BOT, 30, 33), *visits(1, 30, 31)])
    merged, view = LocalAnswers(platform.views, sources, platform.lsn), platform.views["sessions"]
    layers = {key: [o.layer for o in lineage.origins(merged, view, f"key = {key}", [2])] for key in (BOT, 1)}
    assert layers == {BOT: ["batch"] * 30 + ["hot_key"] * 3, 1: ["batch"] * 2 + ["speed"]}


def test_a_publication_keeps_its_hot_keys(platform: Platform) -> None:
    """Rollback and pins answer as that publication did."""
    store = ledger.open()
    sources, named = platform.build(), hot_keys(platform.views["sessions"], 0, MOST)
    run = store.begin_run(Run(run_id="r", mode="full", cut=1))
    for view_id, source in sources.items():
        made = Build(run_id=run.run_id, view_id=view_id, mode="full", cut=1, batch_version=source.batch_version,
                     results_version=source.results_version, row_count=1, seconds=0.0, finished_at=START)  # fmt: skip
        for _ in ("once", "and in a retry"):
            store.record_build(made, copy.deepcopy(named) if view_id == "sessions" else None)
    assert store.built_sources("r")["sessions"].hot_keys == tuple(one.digest for one in named)
    published = store.begin_publication("batch", store.built_sources("r"), cut=1)
    assert store.sources(published) == store.built_sources("r")
    (line,) = hot_key_notices.hot_keys(store, "r")
    assert line.startswith("sessions: 1 keys have more than 100,000 rows in a stretch that goes on, such as 7;")


@pytest.mark.parametrize("text", ["'; DROP TABLE x; --", "abc", "7"])
def test_what_is_no_digest_never_becomes_sql(text: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        sequences.deferred(Dialect.SPARK, None, (text,))


def test_both_engines_call_a_key_the_same() -> None:
    """Keys are text and integers; Spark's half is in tests/spark/test_hot_keys_in_spark.py."""
    kinds = {view.row_kinds["key"] for view in project_views() if hasattr(view, "row_kinds")}
    assert kinds <= {"STRING", "BIGINT"}
