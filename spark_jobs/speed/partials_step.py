"""The second half of a micro-batch: its records' partials, duplicates settled, in one commit.

a pass -> suspects or failed views? pass again -> one commit to speed.partials. Catch-up runs the same step over records
of many lsns.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs import contracts, files, tables
from spark_jobs.dedupe import Window, packed
from spark_jobs.speed import hot, suspects
from spark_jobs.speed.compute import FAILURE_ROW, NOT_SETTLED, STORED_ONCE, Settled
from spark_jobs.speed.workers import Passed, Records, pass_over
from spark_jobs.view import View


@dataclass
class Outcome:
    """What a pass found: per lsn its counts, the ids it saw, and the views that failed with the reason."""

    ids: pa.Table
    rejects: dict[int, int] = field(default_factory=dict)
    duplicates: dict[int, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def counts(self, lsn: int) -> dict[str, int]:
        facts = pc.sum(pc.equal(self.ids["lsn"], lsn)).as_py() or 0
        return {"facts": facts, "rejects": self.rejects.get(lsn, 0), "duplicates": self.duplicates.get(lsn, 0)}


def write_new(
    records: Records,
    counts: Mapping[int, int],
    views: Sequence[View],
    window: Window,
    started_at: dt.datetime,
) -> Outcome:
    """Partials of lsns that have none yet; `counts`: records per lsn. Adds their ids to the window."""
    return conclude(pass_over(records, views), records, counts, views, window, started_at)


def conclude(
    passed: Passed,
    records: Records,
    counts: Mapping[int, int],
    views: Sequence[View],
    window: Window,
    started_at: dt.datetime,
) -> Outcome:
    """Commit a first pass over lsns that have no partials yet, or what a pass with the verdicts makes of `records`."""
    found = suspects.find(outcome_of(passed.rows).ids, window)
    if found.num_rows:
        files.discard(passed.partials)
        settled = Settled(suspects=found)
        passed = pass_over(records, views, settled)
    else:
        settled = NOT_SETTLED
    passed, outcome = _without_failures(passed, records, views, settled)
    hot.commit(passed.partials, batch_rows(outcome, counts, views, started_at))
    remember(outcome, counts, window)
    return outcome


def _without_failures(
    passed: Passed, records: Records, views: Sequence[View], settled: Settled
) -> tuple[Passed, Outcome]:
    """Pass again until no view fails, as other tasks have written rows of those that do."""
    failed: dict[str, str] = {}
    while (outcome := outcome_of(passed.rows)).failed:
        files.discard(passed.partials)
        failed |= outcome.failed
        passed = pass_over(records, [view for view in views if view.column not in failed], settled)
    outcome.failed = failed
    return passed, outcome


def batch_rows(
    outcome: Outcome, counts: Mapping[int, int], views: Sequence[View], started_at: dt.datetime
) -> list[tuple[int, dict[str, object]]]:
    """Per lsn its control row: the views computed, the counts, the times."""
    computed = [view.column for view in views if view.column not in outcome.failed]
    times = {"started_at": started_at, "finished_at": dt.datetime.now(dt.UTC)}
    return [
        (lsn, {"views": computed, "records": records, **outcome.counts(lsn), **times})
        for lsn, records in counts.items()
    ]


def remember(outcome: Outcome, lsns: Iterable[int], window: Window) -> None:
    """The ids of committed lsns join the window."""
    for lsn in lsns:
        here = outcome.ids.filter(pc.equal(outcome.ids["lsn"], lsn))
        window.add(lsn, packed(here), dt.datetime.now(dt.UTC))


def write_missing(records: Records, lsns: Sequence[int], views: Sequence[View], losers: pa.Table) -> Outcome:
    """Partials of `views` for lsns whose duplicates have been settled before (`losers`)."""
    settled = Settled(losers=losers)
    passed, outcome = _without_failures(pass_over(records, views, settled), records, views, settled)
    computed = [view.column for view in views if view.column not in outcome.failed]
    hot.commit(passed.partials, [(lsn, {"views": computed}) for lsn in lsns])
    return outcome


def outcome_of(rows: pa.Table) -> Outcome:
    """What the control rows of a pass say; `rows` may hold others too."""
    by_kind = {kind: rows.filter(pc.equal(rows["view"], kind)) for kind in (*STORED_ONCE, FAILURE_ROW)}
    ids, failed = by_kind[tables.IDS_ROW], by_kind[FAILURE_ROW]
    packed_ids = pa.table({"ids": _field(ids, "ids"), "positions": ids["positions"]})
    return Outcome(
        ids=suspects.unpack(packed_ids, contracts.load().topics),
        rejects=_per_lsn(by_kind[tables.REJECT_ROW]),
        duplicates=_per_lsn(by_kind[tables.DUPLICATE_ROW]),
        failed=dict(zip(_field(failed, "view").to_pylist(), _field(failed, "reason").to_pylist(), strict=True)),
    )


def _field(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.struct_field(rows["control"], name)


def _per_lsn(rows: pa.Table) -> dict[int, int]:
    counted = pc.value_counts(rows["lsn"])
    return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
