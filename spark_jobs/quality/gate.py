"""The gate between build and publish: suites on the new versions, agreement with speed, one verdict in the ledger.

run -> (files: agreement) + (memory or Spark: suites) -> Data Docs, ledger. `critical` stops, `warning` annotates, and
whatever gives no result stops too. What does not pass is never published (I17); the old publication keeps serving.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.batch.build import changed_days
from spark_jobs.batch.build_tasks import days_together
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.quality.expectations.audited import audited
from spark_jobs.quality.expectations.checkpoint import Checkpoint
from spark_jobs.quality.expectations.relation import Relation
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.quality.expectations.verdicts import Failure, Verdict
from spark_jobs.quality.hot_key_notices import hot_keys, long_stretches
from spark_jobs.quality.reconciliation.agreement import Agreement, accepted, agree
from spark_jobs.quality.reconciliation.held_to_facts import held_to_facts
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage.duckdb_reader import NoTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
Session = Callable[[], "SparkSession"]
"""Returns the Spark session, started at the first call."""


def audit(
    session: Session,
    store: Store,
    views: Views,
    run_id: str,
    say: Say,
    accept: str | None = None,
    *,
    whole: bool = False,
) -> bool:
    """Audit the run's builds and record the verdict; True if it passed.

    whole: compare every row with the speed layer's, and check every file of the new versions; so does mode `full`.
    accept: an operator's reason to publish although rows differ for no known cause; it is kept with the verdict.
    """
    run = store.active_run(run_id)
    if run.summary.get("nothing_new"):
        say(f"run {run_id} has built nothing new: there is nothing to audit")
        return True
    built, current = store.built_sources(run_id), store.current_publication()
    if missing := [view.id for view in views if view.id not in built]:
        raise LedgerError(f"run {run_id} has not built {', '.join(missing)}: `tidemark batch build` comes first")
    old, cut = store.sources(current), current.cut if current else 0
    changed = changed_days(store, run, with_unbuilt(built, old))
    whole = whole or run.mode == "full"
    found = _agreements(views, old, built, agree(views, old, built, changed, whole=whole), cut)
    agreements = [*_told(found, accept, say)]
    days = sorted({*run.days, *chain.from_iterable(days_together(changed.values()).values())})
    checked = audited(run, views, built, old, cut, days, whole=whole)
    verdicts, docs = _verdicts(session, Checkpoint(run_id), checked, say)
    stretches = long_stretches(views, store.builds(run_id), timedelta(days=settings().horizon_days))
    for line in chain(stretches, hot_keys(store, run_id)):
        say(f"notice: {line}")
    disagree = any(agreement.causes.get(UNEXPLAINED) for agreement in agreements)
    passed = not disagree and not any(verdict.is_critical for verdict in verdicts)
    warnings = sum(failure.severity != "critical" for verdict in verdicts for failure in verdict.failures)
    store.progress(run_id, "audit", **{AGREEMENT: [asdict(agreement) for agreement in agreements]})
    store.record_audit(run_id, passed, warnings, docs.as_uri())
    return passed


def _told(found: Iterable[Agreement], accept: str | None, say: Say) -> Iterator[Agreement]:
    """Say what differs, view by view; with a reason to accept it, it is accepted."""
    for agreement in found:
        kept = accepted(agreement, accept) if accept else agreement
        for line in agreement_lines(kept):
            say(line)
        yield kept


def _agreements(
    views: Views, old: Mapping[str, Source], built: Mapping[str, Source], found: Iterable[Agreement], cut: int
) -> Iterator[Agreement]:
    """What agreement found; a view that was held back, older than the publication's `cut`, is held to its facts too."""
    for agreement in found:
        source = old.get(agreement.view)
        is_held_back = source is not None and bool(source.versions) and source.cut < cut
        yield (
            held_to_facts(agreement, views, views[agreement.view], built[agreement.view]) if is_held_back else agreement
        )


def _verdicts(
    session: Session, checkpoint: Checkpoint, suites: Iterable[tuple[Suite, Relation]], say: Say
) -> tuple[list[Verdict], Path]:
    """The verdicts on all tables, and the Data Docs, at the first table that stops the run."""
    verdicts = []
    for suite, relation in suites:
        verdicts.append(_verdict(checkpoint, session, suite, relation))
        for failure in verdicts[-1].failures:
            say(f"{failure.severity}: {suite.table}: {failure.said}")
    return verdicts, checkpoint.docs(next((verdict.table for verdict in verdicts if verdict.is_critical), None))


def _verdict(checkpoint: Checkpoint, session: Session, suite: Suite, relation: Relation) -> Verdict:
    """The verdict on a table; one that cannot be read or validated fails.

    It may pass by a check in memory, part by part, which takes no time beside the planning of Spark's queries. Spark
    checks the others: those in which the check in memory found something, and large ones that only make sense whole.
    """
    import duckdb
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        frames = relation.frames(suite)
        glance = None if frames is None else checkpoint.glance(suite, frames)
        if glance is not None and not glance.broken:
            return Verdict(suite.table, ())
        return checkpoint.validate(suite, relation.rows(session(), suite), glance)
    except (PySparkException, Py4JError, duckdb.Error, NoTable) as error:
        return Verdict(
            suite.table, (Failure("critical", f"cannot be audited: {(str(error) or repr(error)).splitlines()[0]}"),)
        )


def agreement_lines(agreement: Agreement) -> Iterator[str]:
    """The lines about a view's agreement: none if all rows agree."""
    if agreement.causes:
        causes = ", ".join(f"{rows:,} {cause}" for cause, rows in agreement.causes.items())
        yield f"{agreement.view}: {agreement.differing:,} of {agreement.rows:,} rows differ from speed: {causes}"
    yield from (f"  {row}" for row in agreement.unexplained)
    if agreement.note and not agreement.causes:
        yield f"{agreement.view} {agreement.note}"
