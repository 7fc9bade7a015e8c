"""The identity of a micro-batch: which Kafka offsets it takes, and whether they continue the log.

(log's end, offset ranges, topic ids) -> the next lsn, or a named stop; then, what is lost by going on. Pure; its
tests alone: `pytest tests/unit/speed/test_continuity.py`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from spark_jobs.contracts.row_types import Partition

GONE = "gone:"


class Stop(Exception):
    """The input does not continue the log; nothing was changed. The message names the hole and what to do."""


@dataclass(frozen=True)
class LogEnd:
    """Where the master log ends: its last lsn, and per partition the next offset that it expects.

    topic_ids: topic -> its id in Kafka; `GONE` before the id of a topic that is not followed since its loss was
    accepted. Its offsets stay known: the same topic, when Kafka shows it again, goes on where the log left it.
    """

    lsn: int
    epoch: int
    offsets: Mapping[Partition, int]
    topic_ids: Mapping[str, str]

    @property
    def gone(self) -> set[str]:
        """The topics that are not followed."""
        return {topic for topic, known in self.topic_ids.items() if known.startswith(GONE)}

    @property
    def remembered(self) -> "list[Range]":
        """Empty ranges for control rows, at the offsets that the log expects of topics that are gone."""
        gone = self.gone
        return [Range(t, p, offset, offset) for (t, p), offset in sorted(self.offsets.items()) if t in gone]

    def expects(self, partition: Partition, earliest: int) -> int:
        """A partition's next offset. A new one of a known topic starts at 0, those of a new topic at `earliest`."""
        return self.offsets.get(partition, 0 if partition[0] in self.topic_ids else earliest)


EMPTY = LogEnd(lsn=0, epoch=0, offsets={}, topic_ids={})


@dataclass(frozen=True)
class Range:
    """Offsets [from_offset, until_offset) of one partition."""

    topic: str
    partition: int
    from_offset: int
    until_offset: int


def sizes(ranges: Iterable[Range]) -> Counter[str]:
    """How many offsets of each topic."""
    counted = Counter[str]()
    for taken in ranges:
        counted[taken.topic] += taken.until_offset - taken.from_offset
    return counted


def next_lsn(end: LogEnd, ranges: list[Range], topic_ids: Mapping[str, str], epoch: int) -> int:
    """The lsn of a micro-batch that takes `ranges`.

    Raises Stop where the ranges do not start exactly at the log's end (I4), where a topic was recreated
    or lost (I14), or where a newer epoch has written (I11).
    """
    if epoch < end.epoch:
        raise Stop(f"epoch {epoch} has ended: epoch {end.epoch} writes the log now. Restart the speed application.")
    refuse_changed_topics(end, topic_ids)
    for taken in ranges:
        first, until = taken.from_offset, taken.until_offset
        expected = end.expects((taken.topic, taken.partition), first)
        if first != expected or until < first:
            raise Stop(
                f"{taken.topic} partition {taken.partition}: the log continues at offset {expected}, the micro-batch "
                f"takes [{first}, {until}). Nothing was landed. `tidemark speed recover` shows the hole."
            )
    missing = end.offsets.keys() - {(taken.topic, taken.partition) for taken in (*ranges, *end.remembered)}
    if missing:
        raise Stop(f"the micro-batch says nothing of {sorted(missing)}, which the log has followed so far.")
    return end.lsn + 1


def refuse_changed_topics(end: LogEnd, topic_ids: Mapping[str, str]) -> None:
    """Raise Stop where a topic that the log follows is gone, or has come back as another one."""
    for topic, known in end.topic_ids.items():
        topic_id, followed = topic_ids.get(topic), known.removeprefix(GONE)
        if topic_id == followed or (topic_id is None and topic in end.gone):
            continue
        what = "is gone" if topic_id is None else f"was recreated (id {followed} is now {topic_id})"
        raise Stop(
            f"topic {topic} {what}: its offsets no longer mean what the log says. "
            "`tidemark speed recover` shows what is lost and how to go on."
        )


def following(end: LogEnd, topic_ids: Mapping[str, str]) -> LogEnd:
    """The same end, with all topics that are there followed (again)."""
    return replace(end, topic_ids={**end.topic_ids, **topic_ids})


def advance(end: LogEnd, lsn: int, ranges: list[Range], topic_ids: Mapping[str, str], epoch: int) -> LogEnd:
    """The log's end after landing `ranges` at `lsn`."""
    offsets = {(taken.topic, taken.partition): taken.until_offset for taken in ranges}
    return LogEnd(lsn, epoch, {**end.offsets, **offsets}, {**end.topic_ids, **topic_ids})


def starting_offsets(
    end: LogEnd, available: Mapping[Partition, tuple[int, int]], topic_ids: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    """Spark's `startingOffsets`: the log's end, and the earliest offset for partitions that are new.

    `available`: per partition (earliest, end) offset in Kafka. Raises Stop where Kafka no longer has the log's
    next offset (I14).
    """
    refuse_changed_topics(end, topic_ids)
    start: dict[str, dict[str, int]] = {}
    for (topic, partition), (earliest, latest) in sorted(available.items()):
        expected = end.expects((topic, partition), earliest)
        if not earliest <= expected <= latest:
            raise Stop(
                f"{topic} partition {partition}: the log continues at offset {expected}, Kafka has "
                f"[{earliest}, {latest}). `tidemark speed recover` shows the hole and how to go on."
            )
        start.setdefault(topic, {})[str(partition)] = expected
    return start


@dataclass(frozen=True)
class Loss:
    """What a partition loses if the stream goes on.

    what: why the log cannot be continued there. expected: the offset that the log wanted; resumes_at: where it would go
    on, None where it does not. topic_id: of the topic that is there now, None if none is.
    """

    topic: str
    partition: int
    what: str
    expected: int
    resumes_at: int | None
    topic_id: str | None

    @property
    def hole(self) -> "Loss":
        """What an operator agrees to; where Kafka is behind, its end may move on meanwhile."""
        return replace(self, resumes_at=None) if self.what == "behind" else self

    def __str__(self) -> str:
        said = SENTENCES[self.what].format(expected=self.expected, resumes_at=self.resumes_at)
        return f"{self.topic} partition {self.partition} {said}"


SENTENCES = {
    "gone": "is gone; the log followed it to offset {expected}, and goes on there if the same topic comes back",
    "recreated": "was recreated; the log followed the old one to offset {expected}, and reads it from {resumes_at}",
    "dropped": "is not in the recreated topic any more; the log followed it to offset {expected}",
    "removed": "no longer has offsets from {expected} on; it goes on at {resumes_at}",
    "behind": "ends before offset {expected}: Kafka has lost records that the log has. It goes on at Kafka's end, "
    "{resumes_at}; what was sent since that loss, up to there, is not read",
}


def losses(end: LogEnd, available: Mapping[Partition, tuple[int, int]], topic_ids: Mapping[str, str]) -> list[Loss]:
    """What is lost by going on, a Loss for each partition whose next offset Kafka does not have.

    Of all partitions: also of those that were added to a topic, and whose first records Kafka has removed since.
    """
    found = []
    for topic, partition in sorted(end.offsets.keys() | available.keys()):
        known, now = end.topic_ids.get(topic), topic_ids.get(topic)
        if known is None or (topic in end.gone and now is None):
            continue  # new, or its loss is accepted already
        earliest, latest = available.get((topic, partition), (None, None))
        expected = end.expects((topic, partition), 0)
        loss = partial(Loss, topic, partition, expected=expected, topic_id=now)
        if now is None:
            found.append(loss(what="gone", resumes_at=None))
        elif earliest is None or latest is None:
            found.append(loss(what="dropped", resumes_at=None))
        elif now != known.removeprefix(GONE):
            found.append(loss(what="recreated", resumes_at=earliest))
        elif expected < earliest:
            found.append(loss(what="removed", resumes_at=earliest))
        elif expected > latest:
            found.append(loss(what="behind", resumes_at=latest))
    return found


def without(end: LogEnd, lost: Iterable[Loss], topic_ids: Mapping[str, str]) -> LogEnd:
    """The log's end from which the stream goes on without what is lost."""
    offsets, ids = dict(end.offsets), {**end.topic_ids, **topic_ids}
    for loss in lost:
        place = (loss.topic, loss.partition)
        if loss.what == "gone":
            ids[loss.topic] = GONE + end.topic_ids[loss.topic]
        elif loss.resumes_at is None:
            offsets.pop(place, None)
        else:
            offsets[place] = loss.resumes_at
    return LogEnd(end.lsn, end.epoch, offsets, ids)
