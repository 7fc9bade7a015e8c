"""Prove many records at once that they are facts; the others are judged row by row.

records of one schema version -> readers: typed objects -> columns: Arrow, masks -> prove: Proven, rows left to judge

Nothing is rejected here, so all of it may be stricter than the schema, and none of it more generous.
"""
