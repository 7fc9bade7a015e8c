"""A micro-batch as the speed application computes a small one, once it has landed."""

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.partials_step import Outcome, process
from spark_jobs.storage.side_inputs import SideInputs


def compute(
    writer: InProcessWriter,
    records: pa.Table,
    lsn: int,
    views: Sequence[View],
    window: IdWindow,
    now: datetime,
    side_inputs: SideInputs | None = None,
) -> Outcome:
    """Partials of the records of one lsn; without `side_inputs`, no fact of an earlier one is known."""
    known = side_inputs or SideInputs([], 0)
    return process(writer.decode(records, lsn), {lsn: records.num_rows}, views, window, known, now)
