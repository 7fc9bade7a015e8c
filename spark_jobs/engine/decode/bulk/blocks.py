"""Cut records into blocks that fit a processor's cache, and prove what can be proven of each.

records -> blocks -> proven -> (proofs, rows left to judge)
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts import row_types
from spark_jobs.contracts.model import Contract, Contracts
from spark_jobs.engine.decode.bulk.layouts import Proven, prove
from spark_jobs.engine.decode.bulk.page import Index, read
from spark_jobs.engine.decode.rows import NEWEST, VERSION_HEADER, stated_version

ROWS = 8192  # of a block, at most: beyond that, fresh memory costs more than fewer calls save
BYTES = 2 << 20  # of a block's values, about


def blocks(records: pa.Table) -> Iterator[pa.RecordBatch]:
    """The records in order, in record batches of bounded size (a single larger record apart)."""
    for batch in records.cast(row_types.RECORD).to_batches(max_chunksize=ROWS):
        size = pc.sum(pc.binary_length(batch["value"])).as_py() or 0
        step = max(1, min(ROWS, batch.num_rows * BYTES // max(size, 1)))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def proven(block: pa.RecordBatch, contracts: Contracts) -> tuple[list[Proven], Index]:
    """(what is proven of a block, the rows left to judge)."""
    page = read(block["value"])
    found: list[Proven] = []
    topic = block["topic"].dictionary_encode()
    of_row, version = topic.indices.fill_null(-1).to_numpy(), _versions(block["headers"])
    left = [np.flatnonzero(of_row < 0)]
    for number, name in enumerate(topic.dictionary.to_pylist()):
        rows = np.flatnonzero(of_row == number)
        for stated in np.unique(version[rows]).tolist():
            proofs, rest = prove(page, rows[version[rows] == stated], _readers(name, stated, contracts))
            found += proofs
            left.append(rest)
    return found, np.sort(np.concatenate(left))


def _readers(topic: str, stated: int, contracts: Contracts) -> dict[str, Contract]:
    """Who may read the topic's records of a stated version, by event type; nested ones are left to `rows`."""
    names = contracts.by_topic(topic)
    found = {n: contracts.of(n) if stated == NEWEST else contracts.version(n, stated) for n in names}
    return {name: contract for name, contract in found.items() if contract is not None and not contract.nested}


def _versions(headers: pa.ListArray) -> NDArray[np.int64]:
    """Per record: the version that its header states."""
    version = np.full(len(headers), NEWEST)
    flat = headers.flatten()
    places = np.flatnonzero(pc.equal(flat.field("key"), VERSION_HEADER).fill_null(False).to_numpy(zero_copy_only=False))
    if places.size:
        stated = flat.field("value").take(pa.array(places)).dictionary_encode()
        numbers = np.array([*map(stated_version, stated.dictionary.to_pylist()), stated_version(None)])
        records = pc.list_parent_indices(headers).to_numpy()[places]
        version[records] = numbers[stated.indices.fill_null(len(numbers) - 1).to_numpy()]  # the last header counts
    return version
