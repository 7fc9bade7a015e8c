"""Catch-up finds exactly the lsns and views that lack partials (I4, I10)."""

from spark_jobs.speed.catch_up import gaps

A, B = "a_v1", "b_v1"
BOTH = frozenset({A, B})


def found(landed, covered, floors, most=100, decoded=0):
    return [(list(gap.counts), gap.views, gap.is_new) for gap in gaps(landed, covered, floors, decoded, most)]


def test_nothing_is_missing_where_every_lsn_has_every_view():
    assert found({1: 5, 2: 5}, {1: BOTH, 2: BOTH}, {A: 0, B: 0}) == []


def test_a_crash_between_the_two_commits_leaves_a_new_gap_at_the_end():
    assert found({1: 5, 2: 5}, {1: BOTH}, {A: 0, B: 0}) == [([2], BOTH, True)]


def test_a_new_view_lacks_every_lsn_but_is_not_new_there():
    assert found({1: 5, 2: 5}, {1: frozenset({A}), 2: frozenset({A})}, {A: 0, B: 0}) == [
        ([1, 2], frozenset({B}), False)
    ]


def test_below_its_floor_a_view_needs_nothing():
    covered = {lsn: frozenset({A}) for lsn in (1, 2, 3)}
    assert found({1: 1, 2: 1, 3: 1}, covered, {A: 0, B: 2}) == [([3], frozenset({B}), False)]


def test_gaps_are_cut_into_portions_and_where_the_kind_of_gap_changes():
    landed = {1: 60, 2: 60, 3: 10, 4: 10}
    covered = {1: frozenset({A}), 2: frozenset({A}), 3: frozenset({A})}
    assert found(landed, covered, {A: 0, B: 0}, most=100) == [
        ([1], frozenset({B}), False),
        ([2, 3], frozenset({B}), False),
        ([4], BOTH, True),
    ]


def test_an_empty_micro_batch_still_needs_its_control_row():
    assert found({1: 0}, {}, {A: 0}) == [([1], frozenset({A}), True)]


def test_b1_an_lsn_that_was_trimmed_is_not_new():
    """Its identities are known, and a new view's partials obey the batch layer's verdicts."""
    landed, covered = dict.fromkeys((1, 2, 3, 4), 5), {3: frozenset({A})}
    assert found(landed, covered, {A: 2, B: 0}, decoded=2) == [
        ([1, 2, 3], frozenset({B}), False),
        ([4], BOTH, True),
    ]
