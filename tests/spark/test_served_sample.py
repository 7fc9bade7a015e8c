"""I20: what readers would be served is held to the files before a run is published."""

from collections.abc import Callable

import pytest

from spark_jobs.definitions.bound_view import View
from spark_jobs.publication import served_sample
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.names import ensure_named
from spark_jobs.serving.render import SparkTables
from spark_jobs.settings import settings
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark

OF_EACH_KIND = ("orders_by_hour", "lift_rides_sliding", "sessions", "delay_by_carrier_day", "airline_names")
TYPES = ("order_placed", "lift_ride_taken", "page_viewed", "flight_departed", "airline_changed", "sentence_posted")


def landed(lake: Lake, first: int) -> None:
    lake.land([event(name, first + n) for n, name in enumerate(TYPES)])


def spoilt(view_name: str, text: str) -> Callable[[SparkTables, View], str]:
    """How Spark gets the fresh rows of one view: with a condition more."""
    added = SparkTables.added

    def spoilt_added(parts: SparkTables, view: View) -> str:
        return f"SELECT * FROM ({added(parts, view)}) WHERE {text}" if view.name == view_name else added(parts, view)

    return spoilt_added


def test_a8_i20_a_view_that_is_served_otherwise_than_its_files_say_is_not_published(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Build, audit and agreement see nothing of it: the fault is in the text that Spark runs."""
    lake.use("orders_by_hour", "word_count")
    landed(lake, 1)
    lake.plan("r1")
    landed(lake, 10)
    lake.build("r1")
    lake.store.record_audit("r1", passed=True)
    monkeypatch.setattr(SparkTables, "added", spoilt("word_count", "false"))
    with pytest.raises(PublishRefused, match=r"word_count would be served otherwise .* \(by the files\) .* \(served\)"):
        lake.publish("r1", served_sample.hold)
    run = lake.store.run("r1")
    assert lake.store.current_publication() is None and run is not None and run.state == "failed"


def test_a8_i20_a_text_that_spark_refuses_is_not_published_either(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.use("word_count")
    landed(lake, 1)
    lake.plan("r1")
    lake.build("r1")
    lake.store.record_audit("r1", passed=True)
    monkeypatch.setattr(SparkTables, "added", spoilt("word_count", "no_such_column"))
    with pytest.raises(PublishRefused, match=r"word_count cannot be served: .*UNRESOLVED_COLUMN"):
        lake.publish("r1", served_sample.hold)


def test_a8_i20_views_of_each_kind_are_served_as_their_files_say(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over built and fresh rows; the doors agree with the files of every view."""
    monkeypatch.setenv("TIDEMARK_SERVED_SAMPLE_SECONDS", "600")
    settings.cache_clear()
    lake.use(*OF_EACH_KIND)
    landed(lake, 1)
    lake.plan("r1")
    landed(lake, 10)
    lake.build("r1")
    ensure_named(lake.rows, lake.views)
    looked_at = served_sample.hold(lake.rows, lake.views, lake.store.built_sources("r1"), seed=2)
    assert {*looked_at} >= {*OF_EACH_KIND}
    monkeypatch.undo()
    settings.cache_clear()
