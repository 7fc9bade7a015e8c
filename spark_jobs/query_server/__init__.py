"""The second door: a read server beside Spark, over the same tables, in milliseconds and read-only by construction."""
