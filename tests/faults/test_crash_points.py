"""I10: the application is killed at each point around its two commits; what it lands is what it would have landed."""

import signal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from spark_jobs.drill import crash_points
from spark_jobs.drill.crash_points import BY_WORKERS, IN_PROCESS
from spark_jobs.storage import tables
from tests.faults.conftest import Stream

pytestmark = [pytest.mark.fault, pytest.mark.platform]

PROGRAM = f"import sys; from {crash_points.__name__} import main; sys.exit(main())"


def landed(stream: Stream) -> list[tuple[str, int, int]]:
    """Topic, partition and offset of each record in the log."""
    log = DeltaTable(stream.platform.delta(tables.MASTER_LOG)).to_pyarrow_dataset()
    rows = log.to_table(columns=["topic", "partition", "offset"], filter=pc.field("kind") == "record")
    return [tuple(row.values()) for row in rows.to_pylist()]


def counted(stream: Stream, view: str, measure: str) -> int:
    partials = DeltaTable(stream.platform.delta(tables.SPEED_PARTIALS)).to_pyarrow_dataset()
    rows = partials.to_table(columns=[view], filter=pc.field("view") == view)[view]
    total: int = pc.sum(pa.chunked_array(rows).combine_chunks().field(measure)).as_py()
    return total


@pytest.mark.parametrize("point", [*IN_PROCESS, *BY_WORKERS])
def test_i10_killed_at_a_commit_and_started_again_is_as_if_never_killed(stream: Stream, point: str) -> None:
    stream.send(30)
    crash_points.arm(stream.platform.settings, point)
    with stream.application(PROGRAM, in_process_records=0 if point in BY_WORKERS else 20_000) as process:
        said, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, said[-3000:]
    stream.catch_up()
    records = landed(stream)
    assert len(records) == len(set(records)) == stream.sent
    assert counted(stream, "orders_by_day_v1", "orders") == stream.sent
