"""The second half of a micro-batch: its facts' partials, duplicates judged, in one commit.

facts on disk -> verdict -> partials; does a view fail? again without it -> one commit to speed.partials. Catch-up runs
the same step over records of many lsns.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed import partials_table, staged_facts
from spark_jobs.speed.distributed import Derived, Taken, derive
from spark_jobs.speed.pass_rows import Verdict, duplicates_verdict, per_lsn, verdict_rows
from spark_jobs.storage import data_files
from spark_jobs.storage.side_inputs import SideInputs


@dataclass
class Outcome:
    """What a pass found: the ids that count and those that do not, per lsn its rejects, why which view failed."""

    verdict: Verdict
    rejects: dict[int, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def counts(self, lsn: int) -> dict[str, int]:
        """Facts, rejects and duplicates of a micro-batch."""
        found = {"facts": self._facts, "rejects": self.rejects, "duplicates": self._duplicates}
        return {name: counted.get(lsn, 0) for name, counted in found.items()}

    @cached_property
    def _facts(self) -> dict[int, int]:
        return _per_lsn(self.verdict.kept)

    @cached_property
    def _duplicates(self) -> dict[int, int]:
        return _per_lsn(self.verdict.duplicates)


def _per_lsn(rows: pa.Table) -> dict[int, int]:
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(rows["lsn"]).to_pylist()}


def write_new(
    taken: Taken,
    counts: Mapping[int, int],
    views: Sequence[View],
    window: IdWindow,
    side_inputs: SideInputs,
    started_at: dt.datetime,
) -> Outcome:
    """Partials of lsns that have none yet; `counts`: records per lsn. Adds their ids to the window."""
    verdict = duplicates_verdict(staged_facts.ids(taken.facts), window)
    derived = _without_failures(taken, views, verdict.duplicates, side_inputs.before(max(counts)))
    outcome = outcome_of(verdict, [taken.rejects, derived.rejects], derived.failed)
    controls = batch_rows(outcome, counts, views, started_at)
    partials_table.commit(derived.partials, controls, [taken.rejects, derived.rejects, *verdict_rows(verdict)])
    remember(outcome, counts, window)
    data_files.discard(taken.facts)
    return outcome


def write_missing(
    taken: Taken, lsns: Sequence[int], views: Sequence[View], duplicates: pa.Table, side_inputs: SideInputs
) -> Outcome:
    """Partials of `views` for lsns whose `duplicates` have been judged before."""
    derived = _without_failures(taken, views, duplicates, side_inputs.before(max(lsns)))
    computed = [view.column for view in views if view.column not in derived.failed]
    partials_table.commit(derived.partials, [(lsn, {"views": computed}) for lsn in lsns])
    data_files.discard(taken.facts)
    return Outcome(Verdict(staged_facts.ids([]), duplicates), failed=derived.failed)


def _without_failures(
    taken: Taken, views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]
) -> Derived:
    """Derive again until no view fails, as other tasks have written rows of those that do."""
    failed: dict[str, str] = {}
    while (derived := derive(taken.spark, taken.facts, views, duplicates, side_inputs)).failed:
        data_files.discard(derived.partials)
        failed |= derived.failed
        views = [view for view in views if view.column not in failed]
    return replace(derived, failed=failed)


def outcome_of(verdict: Verdict, rejects: Sequence[pa.Table], failed: dict[str, str]) -> Outcome:
    """`rejects`: control rows."""
    return Outcome(verdict, _per_lsn(pa.concat_tables(rejects)), failed)


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


def remember(outcome: Outcome, lsns: Iterable[int], window: IdWindow) -> None:
    """The ids of committed lsns join the window."""
    ids = dict(per_lsn(outcome.verdict.kept))
    for lsn in lsns:
        window.add(lsn, ids.get(lsn, b""), dt.datetime.now(dt.UTC))
