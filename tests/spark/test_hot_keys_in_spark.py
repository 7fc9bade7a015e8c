"""A key whose stretch goes on too long, in Spark: through builds and publications."""

from typing import Any

import pytest

from spark_jobs.publication.publish import ensure_serving
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark
BOT, PERSON = 7, 8


def page(number: int, user: int) -> dict[str, Any]:
    return event("page_viewed", number, occurred_at=f"2026-01-05T09:{number % 60:02d}:00.000Z", user_id=user)


def pages(lake: Lake) -> dict[int, int]:
    """As Spark answers; and as DuckDB does over the same files (I20)."""
    asked = dict(lake.ask("SELECT user_id, pages FROM sessions"))
    publication = lake.store.current_publication()
    assert publication is not None
    merged = LocalAnswers(lake.views, lake.store.sources(publication), 10)
    answer = merged.answer(lake.views["sessions"])
    assert asked == dict(merged.con.sql(f"SELECT user_id, pages FROM ({answer})").fetchall())
    return asked


def test_a_bot_waits_for_builds_and_nobody_else_does(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STRETCH_MAX_ROWS", "3")
    settings.cache_clear()
    lake.use("sessions")
    lake.land([*(page(n, BOT) for n in range(5)), page(10, PERSON)])
    ensure_serving(lake.rows, lake.views, lake.store)
    assert pages(lake) == {BOT: 5, PERSON: 1}, "no key is hot before a build"
    assert lake.run("r1") is not None
    lake.land([page(20, BOT), page(21, PERSON)])
    assert pages(lake) == {BOT: 5, PERSON: 2}
    assert "md5(" in lake.store.serving_sql()["sessions"]
    assert lake.run("r2") is not None
    assert pages(lake) == {BOT: 6, PERSON: 2}
