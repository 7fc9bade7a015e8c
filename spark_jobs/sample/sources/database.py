"""The shop's database, as Debezium's PostgreSQL connector tells of its table `orders`: four records a row.

A row is created, paid, then shipped and corrected; or deleted, which is said twice, the second time by a null value.
"""

import json

from spark_jobs.sample.block import Bytes
from spark_jobs.sample.sources.draw import Built, Draw, instants
from spark_jobs.sample.sources.market import STORES

RECORDS_PER_ROW = 4
DELETED_EVERY = 8  # of so many rows one
FIRST_LSN, BYTES_PER_CHANGE, FIRST_TRANSACTION = 20_000_000, 168, 700
STATUS = ("placed", "paid", "shipped", "shipped")


def changes(draw: Draw) -> Built:
    """The positions in the database's log grow with the numbers of the events, whenever those arrive."""
    keys, values = list[bytes](), list[Bytes]()
    columns = zip(draw.occurred_ms.tolist(), instants(draw.occurred_ms), strict=True)
    for number, (at, written) in enumerate(columns, draw.first):
        row, step = divmod(number, RECORDS_PER_ROW)
        is_doomed = row % DELETED_EVERY == 0
        order_id = f"row-{draw.tag}-{row}"
        keys.append(json.dumps({"order_id": order_id}, separators=(",", ":")).encode())
        if is_doomed and step == RECORDS_PER_ROW - 1:
            values.append(None)
            continue
        operation = "d" if is_doomed and step == 2 else "u" if step else "c"
        before = _row(order_id, row, step - 1, written) if step else None
        after = None if operation == "d" else _row(order_id, row, step, written)
        source = _source(number, at)
        event = {"before": before, "after": after, "source": source, "transaction": None, "op": operation, "ts_ms": at}
        values.append(json.dumps(event, separators=(",", ":")).encode())
    return keys, values


def _row(order_id: str, row: int, step: int, written: str) -> dict[str, object]:
    """Corrected in the end: something comes off the price."""
    amount = 500 + row * 7919 % 90_000 - (100 if step == RECORDS_PER_ROW - 1 else 0)
    return {
        "order_id": order_id, "user_id": 1 + row * 31 % 20_000, "store_id": 1 + row % STORES, "status": STATUS[step],
        "amount_cents": amount, "updated_at": f"{written}000Z",
    }  # fmt: skip


def _source(number: int, at: int) -> dict[str, object]:
    return {
        "connector": "postgresql", "name": "tidemark", "ts_ms": at, "snapshot": "false", "db": "shop",
        "schema": "public", "table": "orders", "txId": FIRST_TRANSACTION + number // 2,
        "lsn": FIRST_LSN + number * BYTES_PER_CHANGE,
    }  # fmt: skip
