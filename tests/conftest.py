"""What every test shares: how Hypothesis runs, and the one embedded platform."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.platform import Platform, running

# The machine is shared and the first call of a process imports much: a slow example is no failure.
settings.register_profile("tidemark", deadline=None, print_blob=True)
settings.load_profile("tidemark")


@pytest.fixture(scope="session")
def platform() -> Iterator[Platform]:
    """The real stack, started once for all tests that ask for it."""
    with running() as started:
        yield started
