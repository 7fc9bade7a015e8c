"""The second half of a micro-batch: the verdict on its duplicates, and its facts' partials, in one commit.

Batch (decoded facts, wherever they are) -> verdict -> partials, once more without a view that fails -> one commit to
speed.partials. Small micro-batches stay in this process (`in_process`), large ones and catch-up are on Spark's workers
(`distributed`): the steps are these.
"""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed.pass_rows import FIXED, Verdict, control_rows, duplicates_verdict, verdict_rows
from spark_jobs.storage import data_files
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.side_inputs import SideInputs


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

    def commit(self, derived: Derived, control_rows: Sequence[pa.Table]) -> None:
        """One version of speed.partials, with the partials and the control rows."""

    def close(self, side_inputs: SideInputs) -> None:
        """Release the facts; if they are in memory, later micro-batches may see them as side inputs."""


@dataclass
class Outcome:
    """What a pass found: the facts that count and those that repeat one, rejects (control rows), why a view failed."""

    verdict: Verdict
    rejects: pa.Table
    failed: Mapping[str, str]

    def counts(self, lsn: int) -> dict[str, int]:
        """Facts, rejects and duplicates of a micro-batch."""
        return {name: per_lsn.get(lsn, 0) for name, per_lsn in self._per_lsn.items()}

    def rejected(self) -> dict[str, int]:
        """Rejects per topic."""
        topics = pc.value_counts(pc.struct_field(self.rejects["control"], "topic")).to_pylist()
        return {each["values"]: each["counts"] for each in topics}

    @cached_property
    def _per_lsn(self) -> dict[str, dict[int, int]]:
        rows = {"facts": self.verdict.kept, "rejects": self.rejects, "duplicates": self.verdict.duplicates}
        counted = {name: pc.value_counts(of_all["lsn"]).to_pylist() for name, of_all in rows.items()}
        return {name: {each["values"]: each["counts"] for each in counts} for name, counts in counted.items()}


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
    derived, computed = _without_failures(batch, views, verdict.duplicates, side_inputs.before(max(counts)))
    outcome = Outcome(verdict, pa.concat_tables([batch.rejects, derived.rejects]), derived.failed)
    about = {"views": computed, "started_at": started_at, "finished_at": dt.datetime.now(dt.UTC)}
    controls = [(lsn, {**about, "records": records, **outcome.counts(lsn)}) for lsn, records in counts.items()]
    rows = [outcome.rejects, *verdict_rows(verdict), control_rows(row_types.BATCH_ROW, controls)]
    batch.commit(derived, rows)
    for lsn in counts:
        window.add(lsn, verdict.ids.get(lsn, b""), dt.datetime.now(dt.UTC))
    batch.close(side_inputs)
    return outcome


def process_again(
    batch: Batch, lsns: Collection[int], views: Sequence[View], duplicates: pa.Table, side_inputs: SideInputs
) -> Mapping[str, str]:
    """Compute partials of `views` for lsns whose `duplicates` are known from before; returns why a view failed."""
    derived, computed = _without_failures(batch, views, duplicates, side_inputs.before(max(lsns)))
    covered = control_rows(row_types.BATCH_ROW, ((lsn, {"views": computed}) for lsn in lsns))
    batch.commit(derived, [derived.rejects, covered])
    batch.close(side_inputs)
    return derived.failed


def _without_failures(
    batch: Batch, views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]
) -> tuple[Derived, list[str]]:
    """Derive again until no view fails, as a failed view may have left rows; with the columns of the other views."""
    failed: dict[str, str] = {}
    while (derived := batch.derive(views, duplicates, side_inputs)).failed:
        data_files.discard(derived.files)
        failed |= derived.failed
        views = [view for view in views if view.column not in failed]
    return replace(derived, failed=failed), [view.column for view in views]
