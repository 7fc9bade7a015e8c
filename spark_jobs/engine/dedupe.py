"""Tell which facts are the first of their identity, and which repeat one.

facts -> first_of_each -> (winners, duplicates); facts, verdicts -> divided, all_divided.

The order that decides is (lsn, topic, partition, offset): the lowest wins, in both layers. An identity is 16 bytes (the
column `identity` of facts), handled as two 64-bit words; several of them travel as one `bytes`, 16 each (`packed`).
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.contracts.row_types import COORDINATES

WIDTH = 16
Words = NDArray[np.uint64]

_ORDER = [(name, "ascending") for name, _ in COORDINATES]
WORDS = np.dtype([("first", "<u8"), ("second", "<u8")])


def packed(facts: pa.Table) -> bytes:
    """The identities of facts, 16 bytes each, in row order."""
    return b"".join(_words(chunk).tobytes() for chunk in facts.column("identity").chunks)


def first_of_each(facts: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(winners, duplicates): the winner is the earliest fact of its identity; both keep the order of their rows."""
    if not (suspects := _repeated(np.frombuffer(packed(facts), WORDS)["first"])).size:
        return facts, facts.slice(0, 0)
    few = facts.select([*dict(COORDINATES), "identity"]).take(suspects)
    ordered = few.append_column("row", pa.array(suspects)).sort_by(_ORDER)
    _, first = np.unique(np.frombuffer(packed(ordered), f"S{WIDTH}"), return_index=True)
    loses = np.ones(len(ordered), bool)
    loses[first] = False
    keep = np.ones(facts.num_rows, bool)
    keep[ordered["row"].to_numpy()[loses]] = False
    return facts.filter(pa.array(keep)), facts.filter(pa.array(~keep))


def without(facts: pa.Table, coordinates: pa.Table) -> pa.Table:
    """The facts that are not listed, as of `divided`."""
    return divided(facts, coordinates)[0]


def divided(facts: pa.Table, coordinates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(facts that are not listed, facts that are) by (topic, partition, offset), and lsn where `coordinates` has it."""
    return all_divided([facts], coordinates)[0]


def all_divided(tables: Sequence[pa.Table], coordinates: pa.Table) -> list[tuple[pa.Table, pa.Table]]:
    """The same of each table, by one join: over a few rows it takes as long as over thousands."""
    if not coordinates.num_rows or not tables:
        return [(facts, facts.slice(0, 0)) for facts in tables]
    names = [name for name, _ in COORDINATES if name in coordinates.column_names]
    every = pa.concat_tables([facts.select(names) for facts in tables])
    places = every.append_column("row", pa.array(np.arange(every.num_rows)))
    listed = coordinates.select(names).cast(every.schema)
    lost = np.zeros(every.num_rows, bool)
    lost[places.join(listed, keys=names, join_type="left semi", use_threads=False)["row"].to_numpy()] = True
    of_each = np.split(lost, np.cumsum([facts.num_rows for facts in tables])[:-1])
    return [_parted(facts, rows) for facts, rows in zip(tables, of_each, strict=True)]


def _parted(facts: pa.Table, lost: NDArray[np.bool_]) -> tuple[pa.Table, pa.Table]:
    if not lost.any():
        return facts, facts.slice(0, 0)
    return facts.filter(pa.array(~lost)), facts.filter(pa.array(lost))


def _words(identity: pa.FixedSizeBinaryArray) -> NDArray[np.void]:
    if identity.null_count:
        raise ValueError("a fact without identity")
    data = identity.buffers()[1]
    if data is None:
        return np.empty(0, WORDS)
    return np.frombuffer(data, WORDS, len(identity), identity.offset * WIDTH)


def _repeated(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions whose word occurs more than once: every duplicate, and by chance another."""
    ordered = np.sort(words)
    if not (ordered[1:] == ordered[:-1]).any():  # the usual case
        return np.empty(0, np.int64)
    order = np.argsort(words)
    same = np.flatnonzero(words[order[1:]] == words[order[:-1]])
    return np.unique(order[np.r_[same, same + 1]])
