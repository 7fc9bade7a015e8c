"""I11: from the moment a new epoch begins on a table, nothing of an older one is committed to it (B5)."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.settings import ROOT
from spark_jobs.storage import fencing
from spark_jobs.storage.fencing import Fence, Fenced

ROWS = pa.schema([("lsn", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> str:
    DeltaTable.create(root := str(tmp_path / "log"), ROWS)
    return root


def append(read: DeltaTable, fence: Fence, lsn: int) -> None:
    with fence.committing(read, lsn) as properties:
        rows = pa.table({"lsn": [lsn]}, schema=ROWS)
        write_deltalake(read, rows, mode="append", commit_properties=properties)


def lsns(root: str) -> list[int]:
    return sorted(DeltaTable(root).to_pyarrow_table()["lsn"].to_pylist())


def test_i11_an_older_epoch_commits_nothing_once_a_newer_one_has_begun(table: str) -> None:
    old = fencing.begin([table], 1)
    append(DeltaTable(table), old, 1)
    before = DeltaTable(table)
    new = fencing.begin([table], 1)
    assert new.epoch > old.epoch
    for read in (DeltaTable(table), before):  # it looks again; it looked before the new epoch began
        with pytest.raises(Fenced, match=f"epoch {new.epoch} writes it now"):
            append(read, old, 2)
    append(DeltaTable(table), new, 2)
    assert lsns(table) == [1, 2]


def test_b5_one_lsn_lands_once_whoever_lands_it(table: str) -> None:
    fence = fencing.begin([table], 1)
    first, second = DeltaTable(table), DeltaTable(table)
    append(first, fence, 1)
    for read in (second, DeltaTable(table)):
        with pytest.raises(Fenced, match="lsn 1 cannot land"):
            append(read, fence, 1)
    assert lsns(table) == [1]


def test_i11_the_epochs_number_outlives_checkpoints_and_the_commits_before_them(table: str) -> None:
    fence = fencing.begin([table], 7)
    append(DeltaTable(table), fence, 1)
    DeltaTable(table).create_checkpoint()
    for commit in Path(table, "_delta_log").glob("*.json"):
        commit.unlink()
    assert fencing.epoch_of(DeltaTable(table)) == 7
    with pytest.raises(Fenced):
        append(DeltaTable(table), Fence(6), 2)


WRITER = """
    import sys
    from deltalake import DeltaTable
    from spark_jobs.storage import fencing
    from tests.unit.storage.test_fencing import append

    root = sys.argv[1]
    fence, lsn = fencing.begin([root], 1), 0
    while True:
        lsn += 1
        append(DeltaTable(root), fence, lsn)
        print(lsn, flush=True)
"""


def test_i11_a_writer_that_is_paused_and_wakes_after_a_takeover_has_no_effect(table: str) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), table],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 3:
            pass
        writer.send_signal(signal.SIGSTOP)
        new = fencing.begin([table], 1)
        landed = lsns(table)
        append(DeltaTable(table), new, landed[-1] + 1)
        writer.send_signal(signal.SIGCONT)
        _, errors = writer.communicate(timeout=60)
    finally:
        writer.kill()
    assert writer.returncode == 1 and "Fenced" in errors, errors
    assert lsns(table) == [*landed, landed[-1] + 1] == list(range(1, len(landed) + 2))
