"""Prove what can be proven of a batch of records.

records -> by topic and stated version -> objects of one shape -> Proven; the rows left to judge
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts.field_paths import KEYWORD, Path, of_many
from spark_jobs.contracts.model import DELETED, Contract, Contracts
from spark_jobs.engine.decode.bulk.columns import column, leaves, quotes_of
from spark_jobs.engine.decode.bulk.readers import Shape, shape_of
from spark_jobs.engine.decode.rows import NEWEST, VERSION_HEADER, stated_version

Index = NDArray[np.int64]

ROWS = 2048  # of a batch, at most: the objects of more fit no cache
FEWEST = 8  # rows for which a try pays
SAMPLE = 8  # records that are looked at, at most, for members that the schema does not name
TRIES = 4
MEMBERS = 256  # that the schema does not name
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError)  # TypeError: a null value


@dataclass(frozen=True)
class Proven:
    """Rows of a batch that are facts of the contract, and their columns (without those carried over)."""

    contract: Contract
    rows: Index
    columns: dict[str, pa.Array]


def proven(batch: pa.RecordBatch, contracts: Contracts) -> tuple[list[Proven], Index]:
    """(what is proven of a batch, the rows left to judge)."""
    proofs: list[Proven] = []
    topic = batch["topic"].dictionary_encode()
    of_row, version = topic.indices.fill_null(-1).to_numpy(), _versions(batch["headers"])
    left = [np.flatnonzero(of_row < 0)]
    for number, name in enumerate(topic.dictionary.to_pylist()):
        rows = np.flatnonzero(of_row == number)
        for stated in np.unique(version[rows]).tolist():
            rest = rows[version[rows] == stated]
            for event_type in contracts.by_topic(name):
                contract = contracts.of(event_type) if stated == NEWEST else contracts.version(event_type, stated)
                more, rest = _prove(batch["value"], rest, contract) if contract else ([], rest)
                proofs += more
            left.append(rest)
    return proofs, np.sort(np.concatenate(left))


def _prove(values: pa.BinaryArray, rows: Index, contract: Contract) -> tuple[list[Proven], Index]:
    """(what is proven of the rows, the others). Tries again for as long as those have members that were not known."""
    proofs, members = list[Proven](), frozenset[Path]()
    for again in range(TRIES):
        if len(rows) < FEWEST:
            break
        texts = values.take(pa.array(rows))
        sample = texts[:: -(-len(rows) // SAMPLE)].to_pylist()
        more = members.union(*(_unknown(text, contract) for text in sample))
        if (again and more == members) or len(more) > MEMBERS:
            break
        members = more
        sure, columns = _read(texts, shape_of(contract, members), contract)
        if sure.size:
            proofs.append(Proven(contract, rows[sure], columns))
        rows = np.delete(rows, sure)
    return proofs, rows


def _unknown(text: bytes, contract: Contract) -> Iterator[Path]:
    """The members of one of the contract's records that the schema does not name."""
    try:
        event = msgspec.json.decode(text)
    except _UNREADABLE:
        return iter(())
    is_ours = isinstance(event, dict) and (contract.nested or event.get("event_type") == contract.event_type)
    return shape_of(contract, frozenset()).unknown(event if is_ours else None)


def _read(texts: pa.BinaryArray, shape: Shape, contract: Contract) -> tuple[Index, dict[str, pa.Array]]:
    """(which of the texts are proven, their columns)."""
    at, objects = _objects(texts.to_pylist(), shape)
    if not objects:
        return at, {}
    quotes = quotes_of(texts if len(at) == len(texts) else texts.take(pa.array(at)))
    values = dict(leaves(objects, shape, quotes))
    columns: dict[str, pa.Array] = {}
    sure = quotes == 0
    for name, rules in contract.schema["properties"].items():
        if "const" not in rules:
            required, certain = name in contract.schema["required"], isinstance(shape.members.get(name), type)
            columns[name], good = column(of_many(values, rules.get(KEYWORD, name)), rules, required, certain)
            sure &= good
    if DELETED in columns:
        columns[DELETED] = columns[DELETED].fill_null(False)
    if sure.all():
        return at, columns
    return at[sure], {name: array.filter(pa.array(sure)) for name, array in columns.items()}


def _objects(texts: Sequence[bytes], shape: Shape) -> tuple[Index, list[Any]]:
    """(which of the texts can be read, what they say)."""
    objects, bad, source = list[Any](), list[int](), iter(texts)
    while len(objects) + len(bad) < len(texts):
        try:
            objects.extend(map(shape.read, source))  # up to an error
        except _UNREADABLE:
            bad.append(len(objects) + len(bad))
    return np.delete(np.arange(len(texts)), bad), objects


def _versions(headers: pa.ListArray) -> Index:
    """Per record: the version that its header states."""
    version = np.full(len(headers), NEWEST)
    flat = headers.flatten()
    at = np.flatnonzero(pc.equal(flat.field("key"), VERSION_HEADER).fill_null(False).to_numpy(zero_copy_only=False))
    if at.size:
        stated = flat.field("value").take(pa.array(at)).dictionary_encode()
        numbers = np.array([*map(stated_version, stated.dictionary.to_pylist()), stated_version(None)])
        records = pc.list_parent_indices(headers).to_numpy()[at]
        version[records] = numbers[stated.indices.fill_null(len(numbers) - 1).to_numpy()]  # the last header counts
    return version
