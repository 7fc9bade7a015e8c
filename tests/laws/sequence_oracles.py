"""What sequence views must answer, the slow and obvious way: one key's rows in order, a loop, a list of results.

A row and a result are dictionaries; times are integers. Shares no code with the views, on purpose.
"""

from collections.abc import Callable, Iterator
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


def page_views_by_zip(rows: list[Row]) -> list[Row]:
    found, code = [], None
    for row in rows:
        if row["kind"] == "profile":
            code = row["zip"]
        else:
            found.append({**_moment(row), "viewed_at": row["ts"], "url": row["url"], "zip": code})
    return found


def clicks_with_user_name(rows: list[Row]) -> list[Row]:
    found, name = [], None
    for row in rows:
        if row["kind"] == "profile":
            name = row["name"]
        else:
            clicked = {column: row[column] for column in ("ad_id", "impression_id")}
            found.append({**_moment(row), "clicked_at": row["ts"], **clicked, "user_name": name})
    return found


def departures_with_weather(rows: list[Row]) -> list[Row]:
    found, weather = [], None
    measured = ("temp_f", "wind_mph", "visibility_miles")
    for row in rows:
        if row["kind"] == "weather":
            weather = row
            continue
        is_known = weather is not None and row["ts"] - weather["ts"] <= 120 * MINUTE
        flight = {"flight_id": row["flight_id"], "departed_at": row["ts"], "delay_minutes": row["delay_minutes"]}
        seen = {name: weather[name] if weather and is_known else None for name in measured}
        at = weather["ts"] if weather and is_known else None
        found.append({**_moment(row), **flight, "observed_at": at, **seen})
    return found


def _moment(row: Row) -> Row:
    return {"opened_at": row["ts"], "closes_at": row["ts"]}


def search_click_through(rows: list[Row]) -> list[Row]:
    found = []
    for status, row, clicks in _shown_and_clicked(rows, "search", 60 * MINUTE, ("search_id",)):
        first = clicks[0]["ts"] if clicks else None
        closes_at = row["ts"] + (0 if status == "orphan" else 60 * MINUTE)
        found.append(
            {
                **{"opened_at": row["ts"], "closes_at": closes_at, "search_id": row["search_id"], "status": status},
                **{"happened_at": row["ts"], "query": row["query"]},
                **{"clicks": 1 if status == "orphan" else len(clicks), "first_clicked_at": first},
            }
        )
    return found


def ad_click_through(rows: list[Row]) -> list[Row]:
    found = []
    for status, row, clicks in _shown_and_clicked(rows, "shown", 30 * MINUTE, ()):
        first = clicks[0]["ts"] if clicks else None
        closes_at = row["ts"] + (0 if status == "orphan" else 30 * MINUTE)
        about = {"opened_at": row["ts"], "closes_at": closes_at, "ad_id": row["ad_id"], "status": status}
        found.append({**about, "happened_at": row["ts"], "first_clicked_at": first})
    return found


def _shown_and_clicked(
    rows: list[Row], shown: str, within: int, same: tuple[str, ...]
) -> Iterator[tuple[str, Row, list[Row]]]:
    """Each showing with its clicks, in order; and the clicks that have none."""
    for row in rows:
        others = [one for one in rows if all(one[name] == row[name] for name in same)]
        if row["kind"] == shown:
            clicks = [o for o in others if o["kind"] == "click" and row["ts"] <= o["ts"] <= row["ts"] + within]
            yield "clicked" if clicks else "not_clicked", row, clicks
        elif not any(o["kind"] == shown and o["ts"] <= row["ts"] <= o["ts"] + within for o in others):
            yield "orphan", row, []


def payments_flagged(rows: list[Row]) -> list[Row]:
    found = []
    for row in rows:
        until_now = [one for one in rows if one["ts"] <= row["ts"]]
        minute = [one for one in until_now if one["ts"] >= row["ts"] - MINUTE]
        recent = [one for one in until_now if one["ts"] >= row["ts"] - 10 * MINUTE]
        rules = []
        if len(minute) >= 3 and len({one["country"] for one in minute}) > 1:
            rules.append("three_in_a_minute")
        if row["amount_cents"] >= 50_000 and any(one["amount_cents"] <= 500 for one in recent):
            rules.append("small_then_large")
        if rules:
            about = {name: row[name] for name in ("payment_id", "amount_cents", "country")}
            rule = "both" if len(rules) > 1 else rules[0]
            found.append({**_moment(row), "attempted_at": row["ts"], **about, "attempts": len(minute), "rule": rule})
    return found


def order_state(rows: list[Row]) -> list[Row]:
    found, state, since, changes = [], "none", 0, 0
    for row in rows:
        action = row["action"]
        allowed = {"none": ("place", "placed"), "open": ("change", "cancel", "placed"), "cancelled": ("placed",)}[state]
        if action not in allowed:
            reason = "placed before" if action == "place" else {"none": "not placed"}.get(state, "cancelled before")
            refused = {"entry": "refused", "state": state, "since": row["ts"], "changes": 0}
            found.append({**_moment(row), **refused, "command_id": row["command_id"], "reason": reason})
        elif state == "none":
            state, since = "open", row["ts"]
        elif action == "change":
            changes += 1
        elif action == "cancel":
            state = "cancelled"
    if state != "none":
        about = {"opened_at": since, "closes_at": FOREVER, "entry": "state", "state": state, "since": since}
        found.append({**about, "changes": changes, "command_id": None, "reason": None})
    return found


CENTRE = {"lat": 47.05, "lon": 8.3}
STOPS = {"north": (1, 0), "west": (0, -1), "south": (-1, 0), "east": (0, 1)}


def bus_speed(rows: list[Row]) -> list[Row]:
    found, before = [], None
    for row in rows:
        if row["kind"] == "previous":
            before = row
            continue
        up, aside = row["lat"] - CENTRE["lat"], row["lon"] - CENTRE["lon"]
        far = (up * up + aside * aside) ** 0.5
        stop = "north" if aside > 0 and up >= 0 else "west" if up > 0 else "south" if aside < 0 else "east"
        way = _metres(STOPS[stop][0] * far - up, STOPS[stop][1] * far - aside, row["lat"])
        metres = speed = arrives_at = None
        if before:
            driven = _metres(row["lat"] - before["lat"], row["lon"] - before["lon"], row["lat"])
            took = row["ts"] - before["ts"]
            metres = int(driven + 0.5)
            if 0 < took <= 5 * MINUTE:
                speed = driven * 3.6e6 / took
                arrives_at = row["ts"] + int(way / driven * took) if driven >= 1 and way < 1e6 else None
        moved = {"line": row["line"], "reported_at": row["ts"], "metres": metres, "speed_kmh": speed}
        found.append({**_moment(row), **moved, "next_stop": stop, "arrives_at": arrives_at})
    return found


def _metres(up: float, aside: float, lat: float) -> float:
    r = lat * 0.017453292519943295
    narrow = 1 - r * r / 2 + r * r * r * r / 24 - r * r * r * r * r * r / 720
    north, east = 111_320 * up, 111_320 * narrow * aside
    return float((north * north + east * east) ** 0.5)


def inner_join(rows: list[Row]) -> list[Row]:
    """Every row stays open; one of the right side has the newest left one, unless that one is deleted."""
    left = next((row for row in reversed(rows) if row["kind"] == "left"), None)
    is_there = left is not None and left["is_there"]
    return [
        {
            "opened_at": row["ts"],
            "closes_at": FOREVER,
            "name": left["name"] if left else None,
            "ad_id": row["ad_id"],
            "joined_at": max(row["ts"], left["ts"]) if left and is_there and row["kind"] == "right" else None,
        }
        for row in rows
    ]
