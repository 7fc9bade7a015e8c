"""What every test shares: how Hypothesis runs, who runs what, and the one embedded platform."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.platform import Platform, running

# The machine is shared and the first call of a process imports much: a slow example is no failure.
settings.register_profile("tidemark", deadline=None, print_blob=True)
settings.load_profile("tidemark")


SHARED = ("platform", "spark")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes share the tests: whoever has the platform, or the Spark session, has all tests that need it."""
    for item in items:
        needed = [name for name in SHARED if name in getattr(item, "fixturenames", ())]
        group = needed[0] if needed else item.nodeid.partition("::")[0]
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def platform() -> Iterator[Platform]:
    """The real stack, started once for all tests that ask for it."""
    with running() as started:
        yield started
