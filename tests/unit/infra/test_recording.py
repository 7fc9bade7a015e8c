"""The recorder of class archives leaves nothing running."""

from pathlib import Path

import psutil
import pytest

from infra.embedded.program import Program, nothing
from infra.embedded.recording import started
from spark_jobs.settings import settings


def refuse() -> None:
    raise OSError("no broker here")


def test_what_was_begun_ends_when_a_later_part_cannot_be_prepared(platform_home: Path) -> None:
    settings().tmp_dir.mkdir(parents=True)
    parts = [Program("first", ("sleep", "60"), nothing), Program("second", ("true",), nothing, prepare=refuse)]
    with pytest.raises(OSError, match="no broker here"), started(parts):
        pass
    assert [child for child in psutil.Process().children() if child.name() == "sleep"] == []
