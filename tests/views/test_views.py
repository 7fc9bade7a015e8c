"""Every view against its cases: as batch, as speed, and merged at every cut. A case is data; see spark_jobs/testing."""

from collections import Counter
from pathlib import Path

import pytest

from spark_jobs.registry.views import project_views
from spark_jobs.testing import cases

CASES = cases.cases(Path(__file__).parent)


def test_every_view_has_three_cases() -> None:
    """A plain one; late, repeated and out of order; and the edge of its window or stretch."""
    counts = Counter(case.view for case in CASES)
    assert project_views().served.keys() == counts.keys()
    assert not [view for view, cases in counts.items() if cases < 3]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.view}-{case.name}")
def test_batch_speed_and_every_cut_between_give_the_expected_answer(case: cases.Case) -> None:
    cases.hold(case)
