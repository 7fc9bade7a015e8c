"""What every test shares: how Hypothesis runs, who runs what, and the one embedded platform."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.platform import Platform, of_each_kind, running

# The machine is shared and the first call of a process imports much: a slow example is no failure.
settings.register_profile("tidemark", deadline=None, print_blob=True)
settings.load_profile("tidemark")


WITH_ONE_OF_THEIR_OWN = ("tests/e2e", "tests/spark")
"""Folders whose tests share the platform, or the Spark session."""


class ByWhatTheyShare(LoadScopeScheduling):
    """Two processes run the tests (`-n 2`): each folder of the above in one of them, and each other file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in WITH_ONE_OF_THEIR_OWN if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByWhatTheyShare:
    """xdist asks for it."""
    return ByWhatTheyShare(config, log)


@pytest.fixture(scope="session")
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    """The real stack, started once for all tests that ask for it: with some views in `make test`, else with all."""
    with ExitStack() as opened:
        is_sample = "not fault" in request.config.option.markexpr
        changes = {"views_folder": opened.enter_context(of_each_kind())} if is_sample else {}
        yield opened.enter_context(running(**changes))
