"""The gate between build and publish: suites on the new versions, agreement with speed, one verdict in the ledger.

run -> (files: agreement) + (memory or Spark: suites) -> Data Docs, ledger. `critical` stops, `warning` annotates, and
whatever gives no result stops too. What does not pass is never published (I17); the old publication keeps serving.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.batch.build import changed_days
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.quality.expectations.audited import Audited
from spark_jobs.quality.expectations.checkpoint import Checkpoint, Failure, Verdict
from spark_jobs.quality.expectations.relations import Relation
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.quality.hot_key_notices import hot_keys, long_stretches
from spark_jobs.quality.reconciliation.agreement import UNEXPLAINED, Agreement, accepted, agree
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage.duckdb_reader import NoTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
Session = Callable[[], "SparkSession"]
"""Returns the Spark session, started at the first call."""


@dataclass(frozen=True)
class Outcome:
    verdicts: tuple[Verdict, ...]
    agreements: tuple[Agreement, ...]
    docs: Path

    @property
    def passed(self) -> bool:
        disagree = any(agreement.causes.get(UNEXPLAINED) for agreement in self.agreements)
        return not disagree and not any(verdict.is_critical for verdict in self.verdicts)

    @property
    def warnings(self) -> int:
        return sum(failure.severity != "critical" for verdict in self.verdicts for failure in verdict.failures)


def audit(session: Session, store: Store, views: Views, run_id: str, say: Say, accept: str | None = None) -> bool:
    """Audit the run's builds and record the verdict; True if it passed.

    accept: an operator's reason to publish although rows differ for no known cause; it is kept with the verdict.
    """
    run = store.active_run(run_id)
    if run.summary.get("nothing_new"):
        say(f"run {run_id} has built nothing new: there is nothing to audit")
        return True
    outcome = _outcome(session, store, views, run, say, accept)
    for line in [
        *long_stretches(views, store.builds(run_id), timedelta(days=settings().horizon_days)),
        *hot_keys(store, run_id),
    ]:
        say(f"notice: {line}")
    store.progress(run_id, "audit", agreement=[agreement.as_dict() for agreement in outcome.agreements])
    store.record_audit(run_id, outcome.passed, outcome.warnings, outcome.docs.as_uri())
    return outcome.passed


def _outcome(session: Session, store: Store, views: Views, run: Run, say: Say, accept: str | None) -> Outcome:
    new, current = store.built_sources(run.run_id), store.current_publication()
    if missing := [view.id for view in views if view.id not in new]:
        raise LedgerError(f"run {run.run_id} has not built {', '.join(missing)}: `tidemark batch build` comes first")
    old = store.sources(current)
    after, changed = current.cut if current else 0, changed_days(store, run)
    agreements = []
    for agreement in agree(views, old, new, changed):
        agreements.append(accepted(agreement, accept) if accept else agreement)
        for line in agreement_lines(agreements[-1]):
            say(line)
    checkpoint = Checkpoint(run.run_id)
    audited = Audited(run, views, new, old, after, sorted({d for days in changed.values() for d in days}))
    verdicts = []
    for suite, relation in audited.suites():
        verdict = _verdict(checkpoint, session, suite, relation)
        verdicts.append(verdict)
        for failure in verdict.failures:
            say(f"{failure.severity}: {verdict.table}: {failure.said}")
    docs = checkpoint.docs()
    failed = next((verdict.table for verdict in verdicts if verdict.is_critical), None)
    return Outcome(tuple(verdicts), tuple(agreements), docs if failed is None else checkpoint.page(failed))


def _verdict(checkpoint: Checkpoint, session: Session, suite: Suite, relation: Relation) -> Verdict:
    """The verdict on a table; one that cannot be read or validated fails.

    A small table may pass by a check in memory, which takes no time beside the planning of Spark's queries. Spark
    checks the others: large ones, and those in which the check in memory found something.
    """
    import duckdb
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if relation.is_small:
            verdict = checkpoint.glance(suite, relation.frame(suite.columns))
            if not verdict.failures:
                return verdict
        return checkpoint.validate(suite, relation.rows(session(), suite.columns))
    except (PySparkException, Py4JError, duckdb.Error, NoTable) as error:
        reason = str(error).splitlines()[0]
        return Verdict(suite.table, len(suite.expectations), (Failure("critical", f"cannot be audited: {reason}"),))


def agreement_lines(agreement: Agreement) -> Iterator[str]:
    """The lines about a view's agreement: none if all rows agree."""
    if agreement.causes:
        causes = ", ".join(f"{rows:,} {cause}" for cause, rows in agreement.causes.items())
        yield f"{agreement.view}: {agreement.differing:,} of {agreement.rows:,} rows differ from speed: {causes}"
    yield from (f"  {row}" for row in agreement.unexplained)
