"""The platform that the end-to-end tests share."""

from collections.abc import Iterator

import pytest

from tests.platform import Platform, shared


@pytest.fixture(scope="package")
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    """Started once for the tests of this folder, and stopped after the last of them.

    Marts are built where a test asks for them: after each publication they would take longer than its run.
    """
    with shared(request.config) as started:
        started.pause("marts")
        yield started
