"""A home for steps that are measured in this process; deleted afterwards."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from spark_jobs.settings import settings


@contextmanager
def own_home(name: str, **variables: str) -> Iterator[None]:
    """The settings are those of a new home, and of these variables."""
    home = Path(tempfile.mkdtemp(prefix=f"tidemark-{name}-"))
    try:
        with homed(home, **variables):
            yield
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def homed(home: Path, **variables: str) -> Iterator[None]:
    """The settings are those of this home, and of these variables."""
    try:
        with patch.dict(os.environ, {"TIDEMARK_HOME": str(home), **variables}):
            settings.cache_clear()
            yield
    finally:
        settings.cache_clear()
