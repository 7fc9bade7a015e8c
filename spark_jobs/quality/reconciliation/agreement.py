"""Compare the new batch with the old one plus speed, row by row; name the cause of each difference.

sources of the publication in force + speed partials up to the new cut | the run's builds -> Agreement per view.
A cause is proven by records, not guessed: exactly those that the layers were bound to see differently; the view's own
expressions give their keys. A row that no cause covers is `unexplained`, and stops the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.quality.reconciliation.attribution import attribute
from spark_jobs.quality.reconciliation.causes import Causes
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers

ACCEPTED = "accepted_by_operator"
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Agreement:
    """One view. `causes`: cause -> rows that differ by it; `note` where nothing could be compared."""

    view: str
    old_cut: int
    new_cut: int
    rows: int
    differing: int
    causes: dict[str, int]
    unexplained: tuple[str, ...] = ()
    note: str = ""


def agree(
    views: Views, old: Mapping[str, Source], new: Mapping[str, Source], changed: Mapping[str, Sequence[str]]
) -> Iterator[Agreement]:
    """One Agreement per view of `new`; `old`: the sources in force. Reads files only."""
    before = with_unbuilt(new, old)
    cuts = {view_id: (before[view_id].cut, source.cut) for view_id, source in new.items()}
    for old_cut, new_cut in sorted(set(cuts.values())):
        causes = Causes(old_cut, new_cut, changed)
        built, speed = LocalAnswers(views, new, new_cut), LocalAnswers(views, before, new_cut)
        for view in views:
            if cuts.get(view.id) == (old_cut, new_cut):
                yield _one(view, built, speed, causes)


def _one(view: View, built: LocalAnswers, speed: LocalAnswers, causes: Causes) -> Agreement:
    speed.con.register("built", built.con.sql(built.own(view)).to_arrow_table())
    compared = compare(speed.con, "FROM built", speed.own(view), shape_of(view))
    agreement = Agreement(view.id, causes.old_cut, causes.new_cut, compared.rows, compared.differing, {})
    if not compared.differing:
        return agreement
    attributed = attribute(speed, view, compared, causes, LocalAnswers.own)
    counts = {cause or UNEXPLAINED: rows for cause, rows in attributed.counts.items()}
    named = attributed.first(("batch", "speed"), where="cause IS NULL")
    return replace(agreement, causes=counts, unexplained=tuple(named))


def accepted(agreement: Agreement, reason: str) -> Agreement:
    """The same agreement, its unexplained rows accepted by an operator."""
    if not agreement.causes.get(UNEXPLAINED):
        return agreement
    causes = {ACCEPTED if cause == UNEXPLAINED else cause: rows for cause, rows in agreement.causes.items()}
    return replace(agreement, causes=causes, note=f"{ACCEPTED}: {reason}")
