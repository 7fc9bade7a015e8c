"""De-duplication against the obvious loop over Python dictionaries and sets."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.contracts.row_types import FACT
from spark_jobs.engine import dedupe, id_window

START = datetime(2025, 3, 1, tzinfo=UTC)
# Few values, and the same first word for several of them: both words must decide.
IDS = st.builds(lambda first, second: bytes([first]) * 8 + bytes([second]) * 8, st.integers(0, 3), st.integers(0, 5))
ROWS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3), IDS))


def facts(rows: list[tuple[int, str, int, int, bytes]]) -> pa.Table:
    names = ["lsn", "topic", "partition", "offset", "identity"]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    fields = [FACT.field(name) for name in names]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], names=names)
    half = table.num_rows // 2  # several chunks, and slices with an offset
    return pa.concat_tables([table.slice(0, half), table.slice(half)])


@given(ROWS)
def test_the_winner_of_an_identity_is_its_earliest_row_in_the_log(rows):
    table = facts(sorted(set(rows), key=lambda row: row[4]))
    winners, duplicates = dedupe.first_of_each(table)
    expected = {}
    for row in sorted(zip(*table.to_pydict().values(), strict=True)):
        expected.setdefault(row[4], row)
    assert sorted(zip(*winners.to_pydict().values(), strict=True)) == sorted(expected.values())
    both = pa.concat_tables([winners, duplicates])
    order = [(name, "ascending") for name in table.column_names]
    assert both.sort_by(order).equals(table.sort_by(order))


@given(ROWS, ROWS, st.booleans())
def test_without_drops_the_listed_coordinates_and_nothing_else(rows, verdicts, with_lsn):
    names = (["lsn"] if with_lsn else []) + ["topic", "partition", "offset"]
    listed = facts(verdicts).select(names)
    left = dedupe.without(facts(rows), listed)
    keys = set(zip(*listed.to_pydict().values(), strict=True))
    assert left.to_pylist() == [r for r in facts(rows).to_pylist() if tuple(r[n] for n in names) not in keys]


@given(st.lists(ROWS), ROWS)
def test_tables_are_divided_together_as_each_by_itself(tables, verdicts):
    listed, every = facts(verdicts).select(["topic", "partition", "offset"]), [facts(rows) for rows in tables]
    assert dedupe.all_divided(every, listed) == [dedupe.divided(each, listed) for each in every]


@given(st.lists(st.lists(IDS, max_size=6), max_size=12), st.lists(IDS))
def test_the_window_knows_what_was_added_and_nothing_else(batches, asked):
    window = id_window.IdWindow(seconds=3600, max_ids=10_000)
    for lsn, ids in enumerate(batches):
        window.add(lsn, b"".join(ids), START)
    seen = {i for ids in batches for i in ids}
    assert window.known(b"".join(asked)).tolist() == [i in seen for i in asked]


def test_the_window_keeps_at_least_what_it_promises_and_not_much_more():
    window = id_window.IdWindow(seconds=100, max_ids=1000)
    ids = [n.to_bytes(8, "big") * 2 for n in range(20_000)]
    for lsn in range(2000):
        window.add(lsn, b"".join(ids[lsn * 10 : lsn * 10 + 10]), START + timedelta(milliseconds=lsn))
    assert window.known(b"".join(ids[-1000:])).all()
    assert len(window) <= 1000 + 1000 // id_window.RUNS
    for minute in (1, 2, 3):
        window.add(3000 + minute, ids[0], START + timedelta(minutes=minute))
    assert not window.known(b"".join(ids[1:])).any()
    assert window.known(ids[0]).all()


def test_a6_an_outage_does_not_empty_the_window():
    window = id_window.IdWindow(seconds=3600, max_ids=1000)
    window.add(1, bytes(16), START)
    for lsn, minutes in ((2, 0), (3, 1), (4, 50)):
        window.add(lsn, b"\1" * 16, START + timedelta(hours=5, minutes=minutes))
    assert window.known(bytes(16)).all(), "producers repeat what they sent before the outage"
    for minutes in range(51, 200):
        window.add(minutes, b"\2" * 16, START + timedelta(hours=5, minutes=minutes))
    assert not window.known(bytes(16)).any()


def test_the_window_refuses_a_batch_out_of_log_order():
    window = id_window.IdWindow(seconds=100, max_ids=1000)
    window.add(7, bytes(16), START)
    with pytest.raises(ValueError, match="lsn 7 after 7"):
        window.add(7, bytes(16), START)


def test_packed_identities_are_those_of_the_rows_whatever_the_chunks():
    table = facts([(1, "a", 0, n, bytes([n]) * 16) for n in range(5)])
    assert dedupe.packed(table.slice(1, 3)) == b"".join(bytes([n]) * 16 for n in (1, 2, 3))
    assert dedupe.packed(facts([])) == b""
