"""The index of identities: the first fact of each counts, across runs and repeated decodes, and its files stay few."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.batch import identity_index
from spark_jobs.batch.identity_index import INDEX, STAGED
from spark_jobs.expressions import duckdb_session
from spark_jobs.storage.lsn_ranges import scope

NOW = datetime(2026, 1, 5, tzinfo=UTC)
Fact = tuple[int, int, int]
"""lsn, offset, identity."""


def staged(facts: list[Fact]) -> pa.Table:
    rows = [
        {"event_type": "a", "identity": bytes([identity]) * 16, "lsn": lsn, "topic": "t", "partition": 0}
        | {"offset": offset, "timestamp": NOW}
        for lsn, offset, identity in facts
    ]
    return pa.Table.from_pylist(rows, schema=STAGED)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """One for all examples: to open one takes longer than to compare their facts."""
    return duckdb_session.connect()


def compared(facts: list[Fact], known: list[tuple[int, int]], todo: Any) -> tuple[set[Fact], set[tuple[int, int]]]:
    """The losers, and what the index has then."""
    con = connection()
    con.register("staged", staged(facts))
    index = [{"identity": bytes([identity]) * 16, "lsn": lsn} for identity, lsn in known]
    con.register("known", pa.Table.from_pylist(index, schema=INDEX))
    identity_index._compare(con, todo)
    lost = con.execute('SELECT lsn, "offset", identity FROM losers').fetchall()
    won = con.execute("SELECT identity, lsn FROM winners").fetchall()
    kept = {(identity, lsn) for identity, lsn in known if todo.previous >= lsn and not again(todo, lsn)}
    return {(lsn, at, one[0]) for lsn, at, one in lost}, kept | {(one[0], lsn) for one, lsn in won}


def again(todo: Any, lsn: int) -> bool:
    return any(first <= lsn <= last for first, last in todo.again)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=40),
    st.integers(0, 6),
    st.integers(1, 40),
    st.data(),
)
def test_the_first_of_each_identity_counts_however_the_log_is_divided(
    sent: list[tuple[int, int]], cut: int, most: int, data: st.DataObject
) -> None:
    """Two runs, the second of which may decode lsns of the first again, some records at a time, leave what one leaves.

    Some facts of the first were none then: their schemas came later.
    """
    facts = [(lsn, at, identity) for at, (lsn, identity) in enumerate(sorted(sent, key=lambda one: one[0]))]
    whole_lost, whole_index = compared(facts, [], scope(0, 6))
    first = [fact for fact in facts if fact[0] <= cut]
    hidden = set(data.draw(st.lists(st.sampled_from(first)))) if first else set()
    once_lost, index = compared([fact for fact in first if fact not in hidden], [], scope(0, cut))
    repeated = {lsn for lsn, _, _ in hidden} | (
        data.draw(st.sets(st.sampled_from(range(1, cut + 1)))) if cut else set()
    )
    # An lsn is decoded again together with those that repeat its identities.
    repeated |= {lsn for lsn, _, one in facts if lsn <= cut and one in {i for at, _, i in facts if at in repeated}}
    todo = scope(cut, 6, [(lsn, lsn) for lsn in repeated])
    lost = {fact for fact in once_lost if fact[0] not in repeated}
    records = Counter(lsn for lsn, _, _ in facts)
    turns = [*todo.portions(most, lambda begin, end: [(lsn, records[lsn]) for lsn in range(begin, end + 1)])]
    assert [lsns for turn in turns for lsns in landed(turn)] == [*landed(todo)], "each once, in order"
    for turn in turns:
        sizes = [records[lsn] for lsn in {*landed(turn)} if lsn <= cut and records[lsn]]
        assert len(sizes) <= 1 or sum(sizes) <= most
        lost_now, index = compared([fact for fact in facts if fact[0] in {*landed(turn)}], sorted(index), turn)
        lost |= lost_now
    assert lost == whole_lost
    assert index == whole_index


def landed(todo: Any) -> Iterator[int]:
    return chain.from_iterable(range(first, last + 1) for first, last in todo.ranges())


@given(st.integers(1, 60), st.integers(1, 5))
def test_files_of_a_bucket_stay_few_and_are_seldom_written_again(runs: int, rows: int) -> None:
    sizes, written = list[int](), 0
    for _ in range(runs):
        joined = identity_index._alike([{"num_records": size} for size in sizes])
        sizes = [*sorted(sizes)[len(joined) :], rows + sum(file["num_records"] for file in joined)]
        written += sizes[-1]
    assert len(sizes) <= 2 + 2 * runs.bit_length()
    assert written <= 2 * rows * runs * (1 + runs.bit_length()), "each row is written again once it has doubled"
