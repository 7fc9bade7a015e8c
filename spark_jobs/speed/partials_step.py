"""The second half of a micro-batch: its records' partials, duplicates settled, in one commit.

records (with lsn) -> pass -> suspects? pass again -> one commit to speed.partials. Catch-up runs the same step over
records of many lsns.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs import contracts, tables
from spark_jobs.dedupe import Window, packed
from spark_jobs.speed import hot, suspects
from spark_jobs.speed.compute import FAILURE_ROW, WORKING, Settled, pass_over
from spark_jobs.view import View

STORED_ONCE = (tables.REJECT_ROW, tables.DUPLICATE_ROW, tables.IDS_ROW)


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
    records: DataFrame, counts: Mapping[int, int], views: Sequence[View], window: Window, started_at: dt.datetime
) -> Outcome:
    """Partials of lsns that have none yet; `counts`: records per lsn. Adds their ids to the window."""
    span = hot.current_span()
    with _settled(records, views, span, window) as (rows, outcome):
        hot.commit(_stored(rows, outcome), span, batch_rows(outcome, counts, views, started_at))
    remember(outcome, counts, window)
    return outcome


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


def write_missing(records: DataFrame, lsns: Sequence[int], views: Sequence[View], losers: pa.Table) -> Outcome:
    """Partials of `views` for lsns whose duplicates have been settled before (`losers`)."""
    span = hot.current_span()
    with _persisted(pass_over(records, views, span, Settled(losers=losers))) as rows:
        outcome = _outcome(rows)
        computed = [view.column for view in views if view.column not in outcome.failed]
        only_views = _stored(rows, outcome).where(~F.col("view").isin(*STORED_ONCE))
        hot.commit(only_views, span, [(lsn, {"views": computed}) for lsn in lsns])
    return outcome


@contextmanager
def _settled(
    records: DataFrame, views: Sequence[View], span: int, window: Window
) -> Iterator[tuple[DataFrame, Outcome]]:
    with _persisted(pass_over(records, views, span)) as rows:
        outcome = _outcome(rows)
        found = suspects.find(outcome.ids, window)
        if not found.num_rows:
            yield rows, outcome
            return
    with _persisted(pass_over(records, views, span, Settled(suspects=found))) as rows:
        yield rows, _outcome(rows)


@contextmanager
def _persisted(rows: DataFrame) -> Iterator[DataFrame]:
    rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


def _outcome(rows: DataFrame) -> Outcome:
    controls = rows.where(F.col("view").startswith("__"))
    return outcome_of(controls.select("view", "lsn", "control", *WORKING.names).toArrow())


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


def _stored(rows: DataFrame, outcome: Outcome) -> DataFrame:
    """Without the working columns, the failure notes, and every row of a view that failed somewhere."""
    left_out = [FAILURE_ROW, *outcome.failed]
    dropped = [*WORKING.names, *outcome.failed]
    return rows.where(~F.col("view").isin(*left_out)).drop(*dropped)
