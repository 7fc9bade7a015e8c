"""The checkpoint of the running query: which offsets Spark says a micro-batch takes.

A checkpoint lives as long as its process (docs/adr): every start begins a new one at the log's own end, so a lost,
copied or altered checkpoint cannot move the stream.
"""

import json
import shutil
from pathlib import Path

from spark_jobs.settings import settings
from spark_jobs.speed.continuity import Range

Offsets = dict[str, dict[str, int]]


def fresh(epoch: int) -> Path:
    """Where this epoch's checkpoint will be; those of earlier epochs are removed."""
    root = settings().checkpoints / "speed"
    root.mkdir(parents=True, exist_ok=True)
    for old in root.iterdir():
        shutil.rmtree(old)
    return root / f"epoch={epoch}"


def ranges(checkpoint: Path, batch_id: int, start: Offsets) -> list[Range]:
    """The offset ranges of Spark's batch `batch_id`; `start` are the query's starting offsets."""
    before = start if batch_id == 0 else _offsets(checkpoint, batch_id - 1)
    after = _offsets(checkpoint, batch_id)
    return [
        Range(topic, int(partition), before.get(topic, {}).get(partition, 0), until)
        for topic, partitions in sorted(after.items())
        for partition, until in sorted(partitions.items(), key=lambda item: int(item[0]))
    ]


def _offsets(checkpoint: Path, batch_id: int) -> Offsets:
    offsets: Offsets = json.loads((checkpoint / f"offsets/{batch_id}").read_text().splitlines()[-1])
    return offsets
