"""Settings of a home that is hard to name."""

from pathlib import Path

import pytest

from spark_jobs.settings import Settings


@pytest.fixture
def here(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "a % home")
