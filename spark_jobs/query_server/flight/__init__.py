"""The read server by Arrow Flight SQL: ADBC, the JDBC driver, and whatever speaks it."""
