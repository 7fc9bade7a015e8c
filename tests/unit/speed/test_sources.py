"""The ranges of a micro-batch, as the workers share them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.speed.continuity import Range
from spark_jobs.speed.sources import LONG, divided

places = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), unique=True)
drawn_ranges = places.flatmap(
    lambda of: st.tuples(
        *(st.builds(Range, *map(st.just, place), st.integers(0, 99), st.integers(99, 4 * LONG)) for place in of)
    )
)


@given(drawn_ranges, st.integers(1, 5))
def test_i4_each_offset_is_in_one_part(ranges: tuple[Range, ...], into: int) -> None:
    parts = divided(ranges, into)
    assert len(parts) == into
    for one in ranges:
        shares = sorted(part[one.topic, one.partition] for part in parts if (one.topic, one.partition) in part)
        assert (shares[0][0], shares[-1][1]) == (one.from_offset, one.until_offset)
        assert all(before[1] == after[0] for before, after in pairwise(shares))


@given(st.lists(st.integers(0, 4 * LONG), min_size=1, max_size=20), st.integers(1, 5))
def test_no_part_is_much_larger_than_another(sizes: list[int], into: int) -> None:
    parts = divided([Range("a", partition, 0, size) for partition, size in enumerate(sizes)], into)
    totals = [sum(until - first for first, until in part.values()) for part in parts]
    assert max(totals) - min(totals) <= LONG + len(sizes)
