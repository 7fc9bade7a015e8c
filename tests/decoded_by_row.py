"""The reference for decode: every record judged by itself, without the vectorised path."""

import numpy as np
import pyarrow as pa

from spark_jobs.contracts.model import Contracts
from spark_jobs.engine.decode.assemble import Decoded, identified, judged, with_outcomes


def by_row(records: pa.Table, contracts: Contracts) -> Decoded:
    """As `decode`."""
    parts, rejects = judged(records, np.arange(records.num_rows), contracts)
    return with_outcomes(Decoded(identified(parts), rejects), contracts)
