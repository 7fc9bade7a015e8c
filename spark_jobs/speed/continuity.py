"""The identity of a micro-batch: which Kafka offsets it takes, and whether they continue the log.

(log's end, offset ranges, topic ids) -> the next lsn, or a named stop. Pure; run its tests alone:
`pytest tests/unit/speed/test_continuity.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.contracts.row_types import Partition


class Stop(Exception):
    """The input does not continue the log; nothing was changed. The message names the hole and what to do."""


@dataclass(frozen=True)
class LogEnd:
    """Where the master log ends: its last lsn, and per partition the next offset that it expects."""

    lsn: int
    epoch: int
    offsets: Mapping[Partition, int]
    topic_ids: Mapping[str, str]

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
    missing = end.offsets.keys() - {(taken.topic, taken.partition) for taken in ranges}
    if missing:
        raise Stop(f"the micro-batch says nothing of {sorted(missing)}, which the log has followed so far.")
    return end.lsn + 1


def refuse_changed_topics(end: LogEnd, topic_ids: Mapping[str, str]) -> None:
    """Raise Stop where a topic that the log follows is gone, or has come back as another one."""
    for topic, known in end.topic_ids.items():
        topic_id = topic_ids.get(topic)
        if topic_id != known:
            what = "is gone" if topic_id is None else f"was recreated (id {known} is now {topic_id})"
            raise Stop(
                f"topic {topic} {what}: its offsets no longer mean what the log says. "
                "`tidemark speed recover` shows what is lost and how to go on."
            )


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


def recover(
    end: LogEnd, available: Mapping[Partition, tuple[int, int]], topic_ids: Mapping[str, str]
) -> tuple[LogEnd, list[str]]:
    """The log's end from which a stopped stream can go on, and what is lost by that, one sentence per hole.

    Partitions whose next offset Kafka no longer has, and those of recreated topics, go on at Kafka's earliest offset;
    topics that are gone are no longer followed.
    """
    offsets, losses = {}, []
    for (topic, partition), expected in end.offsets.items():
        which = f"{topic} partition {partition}"
        if topic not in topic_ids:
            losses.append(f"{which} is gone; the log had followed it to offset {expected}")
            continue
        earliest, latest = available[topic, partition]
        if topic_ids[topic] != end.topic_ids.get(topic):
            losses.append(f"{which} was recreated; it goes on at offset {earliest}")
        elif not earliest <= expected <= latest:
            losses.append(f"{which}: offsets from {expected} on are lost; it goes on at {earliest}")
        else:
            earliest = expected
        offsets[topic, partition] = earliest
    return LogEnd(end.lsn, end.epoch, offsets, dict(topic_ids)), losses
