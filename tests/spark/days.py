"""Events of two days, and what a lake says of them."""

from typing import Any

from spark_jobs.storage import tables
from tests.spark.lake import Lake, event

DAY1, DAY2 = "2026-01-05", "2026-01-06"


def order(number: int, day: str = DAY1, hour: int = 9, **fields: Any) -> dict[str, Any]:
    at = f"{day}T{hour:02d}:{number % 60:02d}:00.000Z"
    return event("order_placed", number, occurred_at=at, **{"store_id": 1, "quantity": 1, **fields})


def page(number: int, day: str, clock: str, user: int = 7) -> dict[str, Any]:
    return event("page_viewed", number, occurred_at=f"{day}T{clock}.000Z", user_id=user, url=f"/{number}")


def counts(lake: Lake) -> list[int]:
    return [row[2] for row in lake.served("orders_by_day")]


def facts(lake: Lake, event_type: str = "order_placed") -> list[tuple[Any, ...]]:
    return lake.stored(tables.facts(event_type))
