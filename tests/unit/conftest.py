"""A home of its own for tests that read or write the platform's files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.embedded.passwords import passwords
from spark_jobs.settings import settings
from tests.read_server import on_a_port as on_a_port
from tests.unit.quality.spoilt import platform as platform
from tests.unit.quality.spoilt import template as template


@pytest.fixture
def with_passwords(platform_home: Path) -> None:
    """As after `up`."""
    passwords(settings())


@pytest.fixture
def platform_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()
