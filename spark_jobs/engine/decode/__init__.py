"""Records become typed facts, or rejects with a reason.

records (row_types.RECORD) -> decode -> facts per event type (Contract.fact_schema), rejects (row_types.REJECT)
The outcomes of late and rejected records are facts of the type `record_noted` (engine/record_outcomes).

`assemble.decode` judges by the schemas that it is given, `by_schema.decode_logged` by those that the log says were in
force. `bulk` proves many records at once; what it cannot prove goes to `rows`, which decides. Pure: Arrow in, Arrow
out, used by both layers.
"""
