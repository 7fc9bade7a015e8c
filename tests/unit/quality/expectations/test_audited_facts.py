"""I1 of a run: every record that it decoded, also once more, has one end, and no event is two facts."""

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.batch import identity_index
from spark_jobs.batch.decode_step import AGAIN
from spark_jobs.ledger.schema import Run
from spark_jobs.quality.expectations.audited import _with_facts, audited
from spark_jobs.quality.expectations.checkpoint import Checkpoint
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables
from tests.local_platform import START, Platform, change, event

FACTS = tables.facts("order_placed")
NEW = 9


@pytest.fixture
def landed(platform_home: Path) -> None:
    """Six orders at lsn 1, which is published, and one of another day at lsn 2."""
    made = Platform(["orders_by_day"])
    made.land([event("order_placed", START + dt.timedelta(minutes=n), event_id=named(n)) for n in range(6)])
    made.land([event("order_placed", START + dt.timedelta(days=3), event_id=named(NEW))])
    made.build()
    index()


def named(number: int) -> str:
    return str(uuid.UUID(int=number + (4 << 76) + (8 << 60)))


def index() -> None:
    """The index as a run leaves it: each fact's identity, with its lsn."""
    facts = duckdb_reader.dataset(FACTS).to_table(["identity", "lsn"])
    rows = facts.cast(pa.schema([("identity", pa.binary()), ("lsn", pa.int64())]))
    write_deltalake(tables.path(tables.IDENTITIES), rows.append_column("bucket", pa.array([0] * rows.num_rows)))


def broken(after: int, cut: int = 2, whole: bool = False, of: str = "", **summary: Any) -> list[str]:
    """Tables whose suites the run would fail; of: only of this one's."""
    run = Run(run_id="r", cut=cut, days=[], summary=summary)
    checkpoint, none = Checkpoint("r"), Views((), ())
    found = []
    for suite, relation in audited(run, none, {}, {}, after, [], whole=whole):
        if of not in ("", suite.table):
            continue
        frames = relation.frames(suite)
        assert frames is not None
        found += [suite.table] if checkpoint.glance(suite, frames).broken else []
    return found


def test_facts_that_are_lost_when_older_records_are_decoded_again_stop_the_run(landed: None) -> None:
    change(FACTS, lambda rows: [row for row in rows if row["event_id"] not in (named(0), named(1))])
    assert broken(after=2, **{AGAIN: [[1, 1]]}) == [tables.MASTER_LOG]
    assert broken(after=1) == [], "the run before has judged them"


@pytest.mark.parametrize("summary", [{}, {AGAIN: [[2, 2]]}])
def test_a_new_fact_that_repeats_an_older_one_stops_the_run(landed: None, summary: dict[str, Any]) -> None:
    after = 2 if summary else 1
    assert broken(after, **summary) == []
    repeat()
    assert broken(after, **summary) == [tables.IDENTITIES]


@pytest.mark.parametrize("few", [1, 100])
def test_a_view_must_have_rows_if_it_counts_a_fact_up_to_the_cut_wherever_that_is(
    platform_home: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.quality.expectations.audited.FEW", few)
    made = Platform(["event_rates", "word_count"])
    made.land([event("sentence_posted", START, event_id=named(n), text=" ") for n in range(6)])
    made.land([event("sentence_posted", START, event_id=named(NEW), text="a word")])
    made.build()
    rates, words = (made.views[name].id for name in ("event_rates", "word_count"))
    assert _with_facts([*made.views], 1) == {rates}, "these have no word"
    assert _with_facts([*made.views], 2) == {rates, words}


def test_of_many_identities_each_run_is_held_to_a_bucket_the_next_to_another(
    landed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.quality.expectations.audited.MANY_IDENTITIES", 1)
    repeat()
    runs = range(2, 2 + identity_index.BUCKETS)
    found = [cut for cut in runs if broken(after=1, cut=cut, of=tables.IDENTITIES)]
    assert len(found) == 1
    assert broken(after=1, cut=found[0] + 1, whole=True) == [tables.IDENTITIES]


def repeat() -> None:
    """The order of lsn 2 gets the identity of one of lsn 1."""

    def repeated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        [older] = [row for row in rows if row["event_id"] == named(4)]
        same = {name: older[name] for name in ("identity", "event_id")}
        return [row | same if row["event_id"] == named(NEW) else row for row in rows]

    change(FACTS, repeated)
