"""What puts events into Kafka: the generated town, real data, records by hand; and the ledger of what was sent.

town, nycflights, hand -> Block -> producer -> Kafka; acknowledgements -> producer ledger (Parquet) -> the oracle
"""
