"""What every test shares: how Hypothesis runs, and who runs what."""

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The machine is shared and the first call of a process imports much: a slow example is no failure.
settings.register_profile("tidemark", deadline=None, print_blob=True)
settings.register_profile("whole", settings.get_profile("tidemark"))
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
