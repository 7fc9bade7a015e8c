"""Records become typed facts, or rejects with a reason.

records (row_types.RECORD) -> decode -> facts per event type (Contract.fact_schema), rejects (row_types.REJECT)
The outcomes of late and rejected records are facts of the type `record_noted` (engine/record_outcomes).

`decode` judges by the schemas that it is given, `decode_logged` by those that the log says were in force.
`bulk` proves many records at once; what it cannot prove goes to `rows`, which decides. Pure: Arrow in, Arrow out, used
by both layers.
"""

from spark_jobs.engine.decode.assemble import Decoded, decode
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from spark_jobs.engine.decode.reasons import Reason, Rejected

__all__ = ["AS_LANDED", "Decoded", "Reason", "Rejected", "decode", "decode_logged"]
