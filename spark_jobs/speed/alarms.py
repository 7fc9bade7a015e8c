"""What rings now: each alarm is judged from what it is about, and says so in one sentence.

Kafka beside the log's end, heartbeat, speed.partials, ledger, disk -> name -> message. A name is its kind, and for some
kinds ": " and a subject. What to do is in docs/runbooks/alarms.md, a section for each kind.
"""

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.contracts.row_types import Partition
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.schema import Verification
from spark_jobs.ledger.store import Store
from spark_jobs.messaging.broker import Broker
from spark_jobs.settings import settings
from spark_jobs.speed import continuity
from spark_jobs.speed.continuity import LogEnd
from spark_jobs.speed.status import health, seconds_since
from spark_jobs.storage import coverage

OF_KAFKA = ("lag", "retention", "hole", "freshness")
"""Kinds that nobody can judge while Kafka does not answer, which is the alarm UNREACHABLE."""
UNREACHABLE, HEARTBEAT = "kafka", "heartbeat"
OF_RUNS = ("run failed", "run late", "run missing", "gate", "agreement", "held back")
VERIFY = "verify"
KINDS = (*OF_KAFKA, UNREACHABLE, HEARTBEAT, "stall", "quarantine", *OF_RUNS, VERIFY, "disk")
"""Those that are judged here; `status.problem` adds those of the application's parts."""
LEAST_RECORDS = 20
"""Fewer records of a topic say nothing about its share of rejects."""

Alarms = Iterator[tuple[str, str]]


@dataclass
class Backlog:
    """What Kafka has and the log has not. records, seconds: per topic how many, and how old the oldest is.

    unread: partition -> the next offset, where there is one. kept_ms: per topic Kafka's retention, where it has one.
    """

    end: LogEnd
    unread: Mapping[Partition, int] = field(default_factory=dict)
    records: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    holes: list[continuity.Loss] = field(default_factory=list)
    kept_ms: Mapping[str, int] = field(default_factory=dict)


def backlog(broker: Broker, end: LogEnd) -> Backlog:
    """Count what is unread. `end`: read before, or a partition that is read meanwhile would seem to have lost records.

    How old it is: see `measure`.
    """
    topic_ids, partitions = broker.partitions()
    available = broker.available(partitions)
    unread, records = dict[Partition, int](), Counter[str]()
    for partition, (earliest, latest) in available.items():
        position = max(end.expects(partition, earliest), earliest)
        records[partition[0]] += max(latest - position, 0)
        if position < latest:
            unread[partition] = position
    return Backlog(end, unread, records, holes=continuity.losses(end, available, topic_ids))


def measure(broker: Broker, known: Backlog) -> None:
    """Ask Kafka how old the oldest unread records are, and how long it keeps them."""
    for (topic, _), at in broker.written_at(known.unread).items():
        known.seconds[topic] = max(known.seconds[topic], time.time() - at)
    known.kept_ms = broker.retention_ms(known.seconds)


def of_kafka(known: Backlog, beat: Mapping[str, Any]) -> Alarms:
    """lag, retention, hole, freshness."""
    for topic, age in known.seconds.items():
        waiting = f"{known.records[topic]:,} unread, the oldest for {age:,.0f} s"
        if age > settings().lag_alarm_seconds:
            yield f"lag: {topic}", waiting
        kept = known.kept_ms.get(topic)
        if kept and age * 1000 > kept * settings().retention_alarm_share:
            yield f"retention: {topic}", f"{waiting}; Kafka removes them after {kept / 1000:,.0f} s"
    for loss in known.holes:
        yield f"hole: {loss.topic} {loss.partition}", str(loss)
    yield from _freshness(known, beat)


def _freshness(known: Backlog, beat: Mapping[str, Any]) -> Alarms:
    """Records wait, in Kafka or in the log, and no answer has become newer for long."""
    limit, waiting = settings().freshness_alarm_seconds, max(known.seconds.values(), default=0.0)
    if waiting <= limit and beat["state"] == "running":
        return  # then what is landed is computed within its micro-batch
    head, answered_at = coverage.head()
    if known.end.lsn > head:
        landed = min(coverage.landed(head).values(), default=None)
        waiting = max(waiting, seconds_since(landed) if landed else 0.0)
    age = min(waiting, seconds_since(answered_at) if answered_at else waiting)
    if age > limit:
        yield "freshness", f"records wait, and the newest answer is {age:,.0f} s old (lsn {head})"


def of_application(beat: Mapping[str, Any]) -> Alarms:
    """What the heartbeat says, or its silence, and the share of rejects among what came in lately."""
    yield from beat["alarms"].items()
    for topic, (records, rejects) in beat.get("recent", {}).items():
        if records >= LEAST_RECORDS and rejects > records * settings().quarantine_alarm_share:
            yield f"quarantine: {topic}", f"{rejects:,} of the last {records:,} records are rejected"


def of_runs(store: Store) -> Alarms:
    """run failed, run late: what became of the newest run, planned or not. One that waits for people is not late."""
    if stopped := store.stopped_plans():
        yield "run failed", f"run {stopped[0].run_id} could not be planned: {stopped[0].error}"
    if (run := next(iter(store.runs(newest=1)), None)) is None:
        return
    audit = store.audit(run.run_id)
    if run.state == "failed" and (audit is None or audit.passed) and not stopped:
        yield "run failed", f"run {run.run_id} failed after its step {run.step}: {run.error}"
    hours = seconds_since(run.started_at) / 3600
    if run.state == "active" and hours > settings().run_alarm_hours and store.replay(run.run_id) is None:
        yield "run late", f"run {run.run_id} began {hours:,.1f} hours ago; the last step that ended is {run.step}"


def of_missing_run(store: Store) -> Alarms:
    """run missing: no run begins any more, be it that none can be planned. Off while nothing was ever published."""
    run, shown = next(iter(store.runs(newest=1)), None), store.current_publication()
    since = run.started_at if run is not None else shown.done_at if shown is not None else None
    if shown is None or since is None:
        return
    hours, last = seconds_since(since) / 3600, "" if run is None else f"; the last one is {run.run_id}"
    if hours > settings().run_missing_alarm_hours:
        yield "run missing", f"no batch run has begun for {hours:,.1f} hours{last}"


def of_verify(look: Verification) -> Alarms:
    """verify: which promises the newest look that came to a verdict found broken. Their rows stay in the ledger."""
    if look.exit_code:
        laws = sorted({one["invariant"] for one in look.findings.values() if one["state"] == "breach"})
        yield VERIFY, f"breach of {', '.join(laws)}, found {look.finished_at:%Y-%m-%d %H:%M} UTC ({look.scope})"


def of_audit(store: Store) -> Alarms:
    """gate, agreement, held back: what the newest audit and its run say."""
    if (audit := store.last_audit()) is None or (run := store.run(audit.run_id)) is None:
        return
    if not audit.passed:
        yield "gate", f"run {run.run_id} did not pass its audit; readers keep the last publication: {audit.docs_url}"
    for view in run.summary.get(AGREEMENT, ()):
        if rows := view["causes"].get(UNEXPLAINED):
            yield f"agreement: {view['view']}", f"{rows:,} rows differ from speed for no known cause (run {run.run_id})"
    for view, lsn in (run.summary.get("held_back") or {}).items():
        yield f"held back: {view}", f"it keeps its old source: it has no speed partials at lsn {lsn}"


def of_disk() -> Alarms:
    usage = shutil.disk_usage(settings().home)
    if usage.free < usage.total * settings().disk_alarm_share:
        yield "disk", f"{usage.free / 2**30:,.1f} GiB of {usage.total / 2**30:,.0f} GiB are free at {settings().home}"


def settle(store: Store, known: Backlog | Exception) -> Mapping[str, Any]:
    """Write down what rings and what rings no more; returns the health of the speed application.

    known: what Kafka told, or why it did not.
    """
    beat = health(store)
    runs, look = (*of_runs(store), *of_missing_run(store), *of_audit(store)), store.last_verdict()
    ringing = dict((*of_application(beat), *runs, *of_disk(), *(of_verify(look) if look is not None else ())))
    # One that starts again and again is not well in between: what it stopped with rings on until it runs.
    unknown: tuple[str, ...] = () if beat["state"] == "running" or HEARTBEAT in ringing else (HEARTBEAT,)
    unknown += (VERIFY,) if look is None else ()  # an erasure makes the ledger forget what was found
    if isinstance(known, Backlog):
        ringing |= dict(of_kafka(known, beat))
    else:
        ringing[UNREACHABLE] = f"Kafka does not answer: {(str(known) or repr(known)).splitlines()[0]}"
        unknown += OF_KAFKA
    store.settle_alarms(ringing, unknown)
    return beat
