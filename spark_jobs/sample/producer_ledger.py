"""The producer ledger: what was acknowledged, as Parquet; the oracle's source.

Sent -> rows in memory -> <producer_ledger>/<run>/NNNN.parquet (written beside, then renamed)

A row stands here only after Kafka's acknowledgement, so the ledger never says more than the log holds. It may say less:
a killed process leaves up to SECONDS of records in the log alone, which the oracle decodes as it decodes records of
other producers.
"""

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contracts.row_types import HEADERS, INSTANT
from spark_jobs.sample.producer import Sent
from spark_jobs.settings import settings

# What a producer of the demo wrote down about each record that Kafka acknowledged; `reason` of rejected ones.
PRODUCER_LEDGER = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", INSTANT),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("outcome", pa.string()),
        ("reason", pa.string()),
    ]
)

ROWS = 250_000
BYTES = 128 * 1024 * 1024
SECONDS = 20.0


class Ledger:
    """`add` is a Producer's `on_sent`. A file is written every ROWS rows, BYTES of values, SECONDS, and at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True)
        self._files = 0
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.write()

    def add(self, sent: Sent) -> None:
        self._sent.append(sent)
        self._rows += len(sent.block)
        self._bytes += sum(map(len, filter(None, sent.block.values)))
        if self._rows >= ROWS or self._bytes >= BYTES or time.monotonic() - self._begun >= SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is in memory as the next file, whole or not at all."""
        if self._sent:
            self._files += 1
            target = self._folder / f"{self._files:04}.parquet"
            unfinished = self._folder / f".{target.name}.unfinished"
            columns = ["topic", "outcome", "reason"]
            pq.write_table(
                table_of(self._sent), unfinished, compression="zstd", compression_level=1,
                use_dictionary=columns, write_statistics=["topic", "partition", "offset"],
            )  # fmt: skip
            unfinished.rename(target)
        self._begin()

    def _begin(self) -> None:
        self._sent: list[Sent] = []
        self._rows, self._bytes, self._begun = 0, 0, time.monotonic()


def new_run(name: str) -> Path:
    """A folder of its own for one run of a producer."""
    return settings().producer_ledger / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"


def files() -> list[Path]:
    """Every file of every run, finished ones only."""
    return sorted(settings().producer_ledger.glob("*/[0-9]*.parquet"))


def table_of(sent: Sequence[Sent]) -> pa.Table:
    """The ledger's rows of acknowledged records."""
    sizes = [len(one.block) for one in sent]
    blocks = [one.block for one in sent]
    columns = {
        "topic": np.repeat(np.array([block.topic for block in blocks], object), sizes),
        "partition": np.repeat([one.partition for one in sent], sizes),
        "offset": np.concatenate([np.arange(one.offset, one.offset + len(one.block)) for one in sent]),
        "timestamp": np.repeat([one.timestamp_ms * 1000 for one in sent], sizes),
        "key": [key for block in blocks for key in block.keys],
        "value": [value for block in blocks for value in block.values],
        "headers": _headers(sent).take(np.repeat(np.arange(len(sent)), sizes)),
        "outcome": [outcome for block in blocks for outcome in block.outcomes],
        "reason": [reason for block in blocks for reason in block.reasons],
    }
    return pa.table({name: pa.array(found, PRODUCER_LEDGER.field(name).type) for name, found in columns.items()})


def _headers(sent: Sequence[Sent]) -> pa.Array:
    """Those of each one's records; none are an empty list, as null would say that nobody knows."""
    return pa.array([[{"key": key, "value": value} for key, value in one.headers] for one in sent], HEADERS)
