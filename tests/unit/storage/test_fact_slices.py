"""Slices of the facts: a file that can hold such facts is never passed over."""

from datetime import date, timedelta

import pyarrow as pa
import pyarrow.dataset as ds
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.storage.fact_slices import Slice, filtered

FIRST = date(2026, 1, 1)
facts = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=12)
slices = st.builds(
    lambda upto, above, days: Slice(upto, min(above, upto), tuple(day(n).isoformat() for n in sorted(days))),
    st.integers(0, 9), st.integers(0, 9), st.sets(st.integers(0, 4), max_size=3),
)  # fmt: skip


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def table(rows: list[tuple[int, int]]) -> pa.Table:
    columns = pa.array([lsn for lsn, _ in rows], pa.int64()), pa.array([day(n) for _, n in rows], pa.date32())
    return pa.table(columns, ["lsn", "day"])


@given(slices, facts)
def test_a_slice_is_what_is_new_and_all_of_its_days(of: Slice, rows: list[tuple[int, int]]) -> None:
    wanted = [
        (lsn, n) for lsn, n in rows if lsn <= of.upto and (lsn > of.above or day(n).isoformat() in of.days)
    ]  # fmt: skip
    assert filtered(table(rows), of) == table(wanted)
    assert ds.dataset(table(rows)).to_table(filter=of.expression()) == table(wanted)


@given(slices, st.lists(facts.filter(bool), max_size=5))
def test_each_file_with_such_facts_is_within_its_bounds(of: Slice, files: list[list[tuple[int, int]]]) -> None:
    actions = pa.table(
        {
            "path": pa.array([str(number) for number in range(len(files))], pa.string()),
            "min.lsn": pa.array([min(rows)[0] for rows in files], pa.int64()),
            "max.lsn": pa.array([max(rows)[0] for rows in files], pa.int64()),
            "min.day": pa.array([day(min(n for _, n in rows)) for rows in files], pa.date32()),
            "max.day": pa.array([day(max(n for _, n in rows)) for rows in files], pa.date32()),
        }
    )
    found = of.among(actions)["path"].to_pylist()
    assert len({*found}) == len(found), "each once"
    assert {str(number) for number, rows in enumerate(files) if filtered(table(rows), of).num_rows} <= {*found}
    if not of.days:
        new = {
            str(n) for n, rows in enumerate(files) if any(of.above < lsn for lsn, _ in rows) and min(rows)[0] <= of.upto
        }
        assert {*found} == (new if of.above < of.upto else set()), "nor is one read for nothing"
