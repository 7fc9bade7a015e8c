"""What sequence views must answer, the slow and obvious way: one key's rows in order, a loop, a list of results.

A row and a result are dictionaries; times are integers. Shares no code with the views, on purpose.
"""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
Oracle = Callable[[list[Row]], list[Row]]
FOREVER = 2**63 - 1
MINUTE = 60_000_000


def sessions(rows: list[Row]) -> list[Row]:
    found: list[list[Row]] = []
    for row in rows:
        if found and row["ts"] - found[-1][-1]["ts"] <= 30 * MINUTE:
            found[-1].append(row)
        else:
            found.append([row])
    return [
        {
            "opened_at": one[0]["ts"],
            "closes_at": one[-1]["ts"] + 30 * MINUTE,
            "started_at": one[0]["ts"],
            "ended_at": one[-1]["ts"],
            "pages": len(one),
            "entry_url": one[0]["url"],
            "exit_url": one[-1]["url"],
        }
        for one in found
    ]


def trades(rows: list[Row]) -> list[Row]:
    found, waiting = [], None
    for row in rows:
        if waiting is None:
            waiting = row
        elif waiting["kind"] == row["kind"]:
            found.append(_item(waiting, row, "superseded"))
            waiting = row
        else:
            found.append(_item(waiting, row, "traded"))
            waiting = None
    return found + ([_item(waiting, None, "waiting")] if waiting else [])


def _item(first: Row, second: Row | None, status: str) -> Row:
    both = [first, second] if second and status == "traded" else [first]
    names = ("order_id", "colour", "execution_id", "venue")
    values = {name: next((row[name] for row in both if row[name] is not None), None) for name in names}
    until = second["ts"] if second else None
    closes_at = FOREVER if until is None else until
    times = {"opened_at": first["ts"], "closes_at": closes_at, "waited_from": first["ts"], "waited_until": until}
    return {**times, "status": status, **values}


def turnarounds(rows: list[Row]) -> list[Row]:
    found = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row["kind"] == "arrival":
            left = after if after and after["kind"] == "departure" else None
            found.append(
                {
                    "opened_at": row["ts"],
                    "closes_at": after["ts"] if after else FOREVER,
                    "airport": row["airport"],
                    "arrived_with": row["arrived_with"],
                    "arrived_at": row["ts"],
                    "next_airport": left["next_airport"] if left else None,
                    "departed_with": left["departed_with"] if left else None,
                    "departed_at": left["ts"] if left else None,
                    "ground_minutes": (left["ts"] - row["ts"]) // MINUTE if left else None,
                }
            )
    return found


def names_as_of(rows: list[Row]) -> list[Row]:
    found, name = [], None
    for row in rows:
        if row["kind"] == "profile":
            name = row["name"]
        else:
            found.append({"opened_at": row["ts"], "closes_at": row["ts"], "url": row["url"], "name_then": name})
    return found


def three_in_a_minute(rows: list[Row]) -> list[Row]:
    found = []
    for row in rows:
        recent = [one for one in rows if row["ts"] - MINUTE <= one["ts"] <= row["ts"]]
        if len(recent) >= 3 and len({one["country"] for one in recent}) > 1:
            found.append({"opened_at": row["ts"], "closes_at": row["ts"], "attempts": len(recent)})
    return found
