"""A slice of a real log, and the answers that what was sent gives: a lost record is seen, whoever else is deceived."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.drill import sent, slice_of_log
from spark_jobs.drill.disturbances import Role, Sending
from spark_jobs.drill.sent import AsSent
from spark_jobs.drill.slice_of_log import NothingToTake
from spark_jobs.ledger.source import with_unbuilt
from spark_jobs.messaging.producer import Record, Sent
from spark_jobs.registry.views import project_views
from spark_jobs.serving.compare import Comparison, compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.storage import log_reader
from tests.local_platform import START, Platform, market

VIEWS = ["orders_by_hour", "orders_by_day", "sessions", "trades", "word_count", "bus_latest", "late_and_rejected"]
NOW = START + timedelta(days=1)


@pytest.fixture
def platform(platform_home: Path) -> Platform:
    """Six micro-batches, with a repeated event and a record that no schema accepts in each of the last three."""
    platform = Platform(VIEWS)
    for number in range(6):
        again = [_named(number - 1), ("order_placed", b"{")] if number > 2 else []
        platform.land([_named(number), *market(number)[1:], *again])
    return platform


def _named(number: int) -> dict[str, Any]:
    """The order of a micro-batch, with the same id every time."""
    return market(number)[0] | {"event_id": str(UUID(int=number))}


def test_a_slice_has_the_newest_events_once_and_what_no_schema_accepts(platform: Platform) -> None:
    taken = slice_of_log.taken(10_000)
    assert (taken.lsns, len(taken.records), taken.left_out) == ((1, 6), 33, 3)
    assert sum(not found.counts for found in taken.records) == 3 and all(found.has_id for found in taken.records[:5])
    assert slice_of_log.taken(7).lsns == (6, 6)
    assert slice_of_log.taken(10_000, (2, 3)).lsns == (2, 3)
    with pytest.raises(NothingToTake, match="lsns 9 to 10"):
        slice_of_log.taken(7, (9, 10))


def test_alerts_are_not_taken_as_a_shadow_platform_sends_its_own(platform_home: Path) -> None:
    assert slice_of_log.alert_topics() == {"alerts.payments"}


def logged(platform: Platform) -> list[dict[str, Any]]:
    rows = log_reader.records(ds.scalar(True), [(1, platform.lsn)]).to_pylist()
    return sorted(rows, key=lambda row: (row["lsn"], row["topic"], row["offset"]))


def compared(platform: Platform, view: str, lost: dict[str, Any] | None = None) -> Comparison:
    """The platform's answer against that of what was sent, as the log tells it, but for one event."""
    seen, events = set[bytes](), list[tuple[Sending, Sent]]()
    for row in logged(platform):
        role = Role.MALFORMED if row["value"] == b"{" else Role.REPEAT if row["value"] in seen else Role.EVENT
        seen.add(row["value"])
        if row != lost:
            at = Sent(row["topic"], row["partition"], row["offset"], row["timestamp"])
            events.append((Sending(Record(row["topic"], row["key"], row["value"]), role), at))
    expected = as_sent(events).expected(view)
    merged = LocalAnswers(platform.views, with_unbuilt(VIEWS, {}), platform.lsn, NOW)
    merged.con.register("expected", expected)
    asked = platform.views[view]
    return compare(merged.con, "FROM expected", merged.answer(asked), shape_of(asked, served=True))


def as_sent(events: list[tuple[Sending, Sent]]) -> AsSent:
    sent.write(events, settings().home)
    alerts, log = settings().home / "records.parquet", ds.dataset(row_types.LOG.empty_table())
    pq.write_table(row_types.RECORD.empty_table(), alerts)
    return sent.oracle(records=alerts, until={}, now=NOW, log=log, cut=0)


def test_a_tombstone_has_happened_when_kafka_got_it(platform_home: Path) -> None:
    tombstone = Sending(Record("profile_changed", b"55", None), Role.EVENT)
    rates = as_sent([(tombstone, Sent("profile_changed", 0, 0, START))]).expected("event_rates")
    assert rates.to_pylist() == [
        {"event_type": "profile_changed", "minute": START.replace(second=0, microsecond=0), "events": 1}
    ]


def test_i3_repeats_and_malformed_change_no_answer_and_a_lost_record_is_seen(platform: Platform) -> None:
    for view in VIEWS[:-1]:
        found = compared(platform, view)
        assert found.rows > 0 and found.differing == 0, (view, found.first(("sent", "served")))
    lost = next(row for row in logged(platform) if row["topic"] == "order_placed")
    assert compared(platform, "orders_by_day", lost).differing == 1


@pytest.mark.parametrize("view", ["late_and_rejected", "payments_scored"])
def test_what_rejects_duplicates_or_micro_batches_decide_is_left_to_the_log(platform_home: Path, view: str) -> None:
    with pytest.raises(KeyError):
        sent.AsSent(row_types.RECORD.empty_table(), NOW, project_views()).expected(view)


def test_the_newest_of_a_long_micro_batch_are_of_all_topics_and_in_order(platform_home: Path) -> None:
    Platform(VIEWS).land([one for number in range(4) for one in market(number)])
    taken = slice_of_log.taken(10).records
    values = [found.record.value for found in taken if found.record.topic == "sentence_posted"]
    assert len({found.record.topic for found in taken}) == 5
    assert [b"number 2" in (value or b"") for value in values] == [True, False]
