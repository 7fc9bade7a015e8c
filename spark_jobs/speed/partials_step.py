"""The second half of a micro-batch: the verdict on its duplicates, and its facts' partials, in one commit.

Batch (decoded facts, wherever they are) -> verdict -> partials, once more without a view that fails -> one commit to
speed.partials. Small micro-batches stay in this process (`in_process`), large ones and catch-up are on Spark's workers
(`distributed`): the steps are these.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed.pass_rows import FIXED, IDS, Verdict, duplicates_verdict, per_lsn, verdict_rows
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.side_inputs import SideInputs

Controls = Sequence[tuple[int, Mapping[str, object]]]
"""lsn and fields of the `__batch__` rows of speed.partials."""


@dataclass(frozen=True)
class Derived:
    """The partials of a batch: rows of speed.partials, or files with such rows that no version names yet.

    rejects: control rows; failed: view column -> why its pass failed.
    """

    rows: Sequence[pa.Table] = ()
    files: Sequence[Written] = ()
    rejects: pa.Table = field(default_factory=FIXED.empty_table)
    failed: Mapping[str, str] = field(default_factory=dict)


class Batch(Protocol):
    """Decoded records of one or more lsns, and where the work on them is done."""

    @property
    def rejects(self) -> pa.Table:
        """Control rows of the records that are rejected."""

    def ids(self) -> pa.Table:
        """Identity, event type and coordinates of the facts (columns of IDS)."""

    def derive(self, views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]) -> Derived:
        """The partials of all facts but `duplicates` (columns of COORDINATES, lsn may be absent)."""

    def undo(self, derived: Derived) -> None:
        """Take back what `derive` wrote."""

    def commit(self, derived: Derived, controls: Controls, control_rows: Iterable[pa.Table]) -> None:
        """One version of speed.partials with the partials, the control rows and a `__batch__` row per lsn."""

    def close(self, side_inputs: SideInputs) -> None:
        """Release the facts; if they are in memory, later micro-batches may see them as side inputs."""


@dataclass
class Outcome:
    """What a pass found: ids that count, ids that repeat one, rejects per lsn, and why a view failed."""

    verdict: Verdict
    rejects: dict[int, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def counts(self, lsn: int) -> dict[str, int]:
        """Facts, rejects and duplicates of a micro-batch."""
        counts = {"facts": self._facts, "rejects": self.rejects, "duplicates": self._duplicates}
        return {name: per_lsn.get(lsn, 0) for name, per_lsn in counts.items()}

    @cached_property
    def _facts(self) -> dict[int, int]:
        return _per_lsn(self.verdict.kept)

    @cached_property
    def _duplicates(self) -> dict[int, int]:
        return _per_lsn(self.verdict.duplicates)


def _per_lsn(rows: pa.Table) -> dict[int, int]:
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(rows["lsn"]).to_pylist()}


def process(
    batch: Batch,
    counts: Mapping[int, int],
    views: Sequence[View],
    window: IdWindow,
    side_inputs: SideInputs,
    started_at: dt.datetime,
) -> Outcome:
    """Compute the partials of lsns that have none; `counts`: records per lsn. Adds their ids to the window."""
    verdict = duplicates_verdict(batch.ids(), window)
    derived = _without_failures(batch, views, verdict.duplicates, side_inputs.before(max(counts)))
    outcome = Outcome(verdict, _per_lsn(pa.concat_tables([batch.rejects, derived.rejects])), derived.failed)
    controls = _controls(outcome, counts, views, started_at)
    batch.commit(derived, controls, [batch.rejects, derived.rejects, *verdict_rows(verdict)])
    _remember(outcome, counts, window)
    batch.close(side_inputs)
    return outcome


def process_again(
    batch: Batch, lsns: Sequence[int], views: Sequence[View], duplicates: pa.Table, side_inputs: SideInputs
) -> Outcome:
    """Compute partials of `views` for lsns whose `duplicates` are known from before."""
    derived = _without_failures(batch, views, duplicates, side_inputs.before(max(lsns)))
    computed = [view.column for view in views if view.column not in derived.failed]
    batch.commit(derived, [(lsn, {"views": computed}) for lsn in lsns], ())
    batch.close(side_inputs)
    return Outcome(Verdict(IDS.empty_table(), duplicates), failed=derived.failed)


def _without_failures(
    batch: Batch, views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]
) -> Derived:
    """Derive again until no view fails, as a failed view may have left rows."""
    failed: dict[str, str] = {}
    while (derived := batch.derive(views, duplicates, side_inputs)).failed:
        batch.undo(derived)
        failed |= derived.failed
        views = [view for view in views if view.column not in failed]
    return replace(derived, failed=failed)


def _controls(outcome: Outcome, counts: Mapping[int, int], views: Sequence[View], started_at: dt.datetime) -> Controls:
    """Per lsn its control row: the views computed, the counts, the times."""
    computed = [view.column for view in views if view.column not in outcome.failed]
    times = {"started_at": started_at, "finished_at": dt.datetime.now(dt.UTC)}
    return [
        (lsn, {"views": computed, "records": records, **outcome.counts(lsn), **times})
        for lsn, records in counts.items()
    ]


def _remember(outcome: Outcome, lsns: Iterable[int], window: IdWindow) -> None:
    """The ids of committed lsns join the window."""
    ids = dict(per_lsn(outcome.verdict.kept))
    for lsn in lsns:
        window.add(lsn, ids.get(lsn, b""), dt.datetime.now(dt.UTC))
