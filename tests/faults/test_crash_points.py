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
from tests.faults.killed import program
from tests.platform import await_true
from tests.spark.lake import event

pytestmark = [pytest.mark.fault, pytest.mark.platform]

IMPORTS = """
    from spark_jobs.ledger.messages import Messages
    from spark_jobs.speed import app
    from spark_jobs.speed.__main__ import main
    from spark_jobs.speed.in_process import InProcessBatch, InProcessWriter
"""
A_REVISION = """
    revise = app.SpeedLayer._revise

    def begins(self, said):
        global is_at_work
        is_at_work = True
        return revise(self, said)

    app.SpeedLayer._revise = begins
"""

COMMITS = [
    'Around(InProcessWriter, "land", "before")',
    'Around(InProcessWriter, "land", "after")',
    'Around(InProcessBatch, "commit", "before")',
    'Around(InProcessBatch, "commit", "after")',
]
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


def revised(stream: Stream) -> int:
    log = DeltaTable(stream.platform.delta(tables.MASTER_LOG)).to_pyarrow_dataset()
    return int(log.count_rows(filter=pc.field("kind") == "revision"))


@pytest.mark.parametrize("point", [*COMMITS, 'Around(Messages, "answer_request", "before")'])
def test_i13_killed_over_a_revision_and_started_again_it_stands_in_the_log_once(stream: Stream, point: str) -> None:
    """What was asked for is neither lost nor said twice."""
    stream.send(5)
    stream.catch_up()
    before, event_id = revised(stream), event("order_placed", stream.sent)["event_id"]
    stream.platform.tidemark("retract", "order_placed", event_id, "--reason", "a test", "--wait", "0")
    with stream.application(program(IMPORTS, point, "main()", A_REVISION)) as process:
        said, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, said[-3000:]
    with stream.application():
        await_true(lambda: revised(stream) > before, 300, "nothing is said")
        stream.send(5)
    stream.catch_up()
    assert revised(stream) == before + 1
    assert len(landed(stream)) == len(set(landed(stream))) == stream.sent
