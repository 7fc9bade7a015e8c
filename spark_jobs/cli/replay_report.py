"""A replay for people: tables in a terminal, the same as a page, lines for a log, JSON for programs.

The page lies in the Data Docs, beside the files that have all differing rows: replays/<id>/index.html.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_jobs.cli import page
from spark_jobs.cli.page import plain
from spark_jobs.ledger.schema import Replay
from spark_jobs.orchestration.interface import NOTHING_DIFFERS, REPLAYS
from spark_jobs.serving.formatting import printable
from spark_jobs.settings import settings

MIB = 2**20


def folder(run_id: str) -> Path:
    return settings().data_docs / REPLAYS / run_id


def row(of: Replay, state: str) -> dict[str, Any]:
    """One line of a list."""
    differing = None if of.differences is None else sum(map(_differing, of.differences))
    who = {"asked_by": of.asked_by, "asked_at": of.asked_at, "approved_by": of.approved_by}
    return {"replay": of.run_id, "state": state, "wants": wants(of), **who, "differing": differing, "reason": of.reason}


def as_json(of: Replay, state: str) -> dict[str, Any]:
    told = {column.name: getattr(of, column.name) for column in Replay.__table__.columns}
    return {**told, "state": state, "needs_approval": bool(of.differences) and of.approved_at is None}


def wants(of: Replay) -> str:
    """What is wanted, in a phrase."""
    days, lsns, views = of.wanted["days"], of.wanted["lsns"], of.wanted["views"]
    parts = [days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"] if days else []
    parts += [f"lsn {first} to {last}" for first, last in lsns[:3]] + (["and others"] if len(lsns) > 3 else [])
    of_what = "raw bytes" if of.wanted["origin"] == "raw" else f"facts for {', '.join(views) or 'all views'}"
    then = ", then served from their newest versions" if of.wanted.get("promote") else ""
    return f"{', '.join(parts) or 'all of history'}, from {of_what}{then}"


def summary(differences: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What readers would see otherwise, view by view; for a task's log."""
    views = list(differences)
    if not views:
        yield f"{NOTHING_DIFFERS}: every answer is the same"
    for view in views:
        kinds = ", ".join(f"{view[kind]:,} {kind}" for kind in ("gone", "new", "other") if view[kind])
        causes = f"; {said}" if (said := _causes(view)) else ""
        yield printable(f"{view['view']}: {_differing(view):,} rows differ ({kinds}) of {view['rows']:,}{causes}")
        yield from (printable(f"  {line}") for line in view["greatest"])


def printed(of: Replay, state: str) -> None:
    Console().print(_tables(of, state))


def written(of: Replay, state: str) -> Path:
    """The page, made anew."""
    return page.write(folder(of.run_id) / "index.html", _tables(of, state))


def _tables(of: Replay, state: str) -> RenderableType:
    about = Table(title=f"replay {of.run_id}", show_header=False, title_justify="left")
    told = {"state": state, "wants": wants(of), "reason": of.reason, "asked by": f"{of.asked_by}, {_at(of.asked_at)}"}
    if of.approved_at is not None:
        told["approved by"] = f"{of.approved_by}, {_at(of.approved_at)}"
    told |= _touched(of.preview)
    for name, value in told.items():
        about.add_row(name, plain(value))
    return Group(about, _views(of), *([_differences(of)] if of.differences else []), *_greatest(of))


def _touched(preview: dict[str, Any]) -> dict[str, str]:
    seconds = (
        "not known: no build yet"
        if preview["seconds"] is None
        else f"{preview['seconds']:,} s of builds, the last time"
    )
    return {
        "raw records": f"{preview['records']:,}",
        "to read": f"{preview['bytes'] / MIB:,.1f} MiB",
        "work": seconds,
        "marts": ", ".join(preview["marts"]) or "none",
    }


def _views(of: Replay) -> Table:
    table = Table("view", "built again", "rows", "seconds, the last time", title="views", title_justify="left")
    for view in of.preview["views"]:
        table.add_row(*(plain("" if value is None else str(value)) for value in view.values()))
    return table


def _differences(of: Replay) -> Table:
    names = ("rows compared", "gone", "new", "with other values", "by cause", "all of them")
    table = Table("view", *names, title="what readers would see otherwise", title_justify="left")
    for view in of.differences or ():
        numbers = (f"{view[name]:,}" for name in ("rows", "gone", "new", "other"))
        link = Text(view["file"], style=f"link {view['file']}")
        table.add_row(plain(view["view"]), *numbers, plain(_causes(view)), link)
    return table


def _greatest(of: Replay) -> Iterator[RenderableType]:
    for view in of.differences or ():
        title = f"{view['view']}, the greatest changes"
        table = Table(title=title, show_header=False, title_justify="left", show_lines=True)
        for line in view["greatest"]:
            table.add_row(plain(line))
        yield table


def _causes(view: dict[str, Any]) -> str:
    """Rows by cause, the most first; nothing where causes were not asked for."""
    by_cause = sorted(view.get("causes", {}).items(), key=lambda one: -one[1])
    return ", ".join(f"{count:,} {cause}" for cause, count in by_cause)


def _differing(view: dict[str, Any]) -> int:
    return int(view["gone"] + view["new"] + view["other"])


def _at(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
