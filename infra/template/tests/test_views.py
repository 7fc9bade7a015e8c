"""Every view against its cases: as batch, as speed, and merged at every cut. A case is a folder of two files."""

from pathlib import Path

import pytest

from spark_jobs.testing import cases


@pytest.mark.parametrize("case", cases.cases(Path(__file__).parent / "views"), ids=lambda case: case.name)
def test_the_view_gives_the_expected_answer(case: cases.Case) -> None:
    cases.hold(case)
