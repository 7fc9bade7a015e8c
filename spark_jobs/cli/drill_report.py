"""The figures of a drill; and for people as lines, as a page of the Data Docs, as JSON beside it."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_jobs.cli import page
from spark_jobs.cli.page import plain
from spark_jobs.orchestration.interface import DRILLS
from spark_jobs.quality.verification.findings import State
from spark_jobs.serving.formatting import printable
from spark_jobs.settings import settings

BY_SENT = "by what was sent"
"""How the note of a finding begins that has it from there."""


@dataclass
class Report:
    """The figures, filled in on the way. findings: of `verify`; as_sent: I3 once more, by what was sent."""

    drill: str
    by: str
    seed: int
    exercises: list[str]
    lsns: tuple[int, int]
    records: int
    left_out: int
    began_at: str
    sent: dict[str, int] = field(default_factory=dict)
    kills: list[dict[str, Any]] = field(default_factory=list)
    starts: int = 0
    log: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    as_sent: list[dict[str, Any]] = field(default_factory=list)
    live: dict[str, Any] | None = None
    failed: str | None = None

    @property
    def views(self) -> dict[str, dict[str, Any]]:
        """View -> rows compared with those of its log, and of what was sent (None: others decide them); differing."""
        views: dict[str, dict[str, Any]] = {}
        for found in self.findings:
            if found["invariant"] == "I3":
                told = {"rows": found["checked"], "differing": found["breaches"], "note": found["note"]}
                views[_view(found)] = {**told, "sent": None}
        for found in self.as_sent:
            if found["note"].startswith(BY_SENT) and (view := views.get(_view(found))):
                view |= {"sent": found["checked"], "differing": view["differing"] + found["breaches"]}
        return views

    @property
    def broken(self) -> list[dict[str, Any]]:
        """What does not hold, or could not be looked at."""
        of_live = self.live["findings"] if self.live else []
        bad = (State.BREACH, State.UNABLE)
        return [found for found in (*self.findings, *self.as_sent, *of_live) if found["state"] in bad]

    @property
    def holds(self) -> bool:
        return self.failed is None and not self.broken and any(view["rows"] for view in self.views.values())

    @property
    def differing(self) -> int:
        return sum(view["differing"] for view in self.views.values())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds, "differing": self.differing, "views": self.views}


def _view(found: dict[str, Any]) -> str:
    return str(found["law"]).split()[0]


def written(report: Report) -> Path:
    """The page, with all figures as JSON in the same folder."""
    made = page.write(settings().data_docs / DRILLS / report.drill / "index.html", _tables(report))
    made.with_name("report.json").write_text(json.dumps(report.as_json(), default=str, indent=2), "utf-8")
    return made


def lines(report: Report) -> Iterator[str]:
    for name, value in _figures(report).items():
        yield f"{name}: {value}"
    for found in report.broken:
        yield printable(
            f"{found['invariant']} {found['law']}: {found['state']}, {found['breaches']:,}; {found['note']}"
        )
        yield from (printable(f"  {row}") for row in found["first"])
    if report.failed:
        yield printable(f"it did not come to its end: {report.failed}")
    yield f"drill {report.drill}: " + ("served = recomputed = what was sent" if report.holds else "IT DOES NOT HOLD")


def _figures(report: Report) -> dict[str, str]:
    by_sent = [view for view in report.views.values() if view["sent"] is not None]
    seconds = ", ".join(f"{kill['seconds']:.1f} s {kill['point']}" for kill in report.kills)
    figures = {
        "slice": f"{report.records:,} records of the lsns {report.lsns[0]:,} to {report.lsns[1]:,}, "
        f"{report.left_out:,} left out (repeated there, or alerts)",
        "exercises": f"{', '.join(report.exercises)}; seed {report.seed}",
        "sent": ", ".join(f"{number:,} {role}" for role, number in report.sent.items()) or "nothing",
        "kills": f"{len(report.kills)}; {report.starts} starts",
        "seconds from SIGKILL until everything was read": seconds or "none",
        "log": ", ".join(f"{name} {number:,}" for name, number in report.log.items()) or "none",
        "views compared": f"{len(report.views)} with those recomputed of the log, {len(by_sent)} with what was sent",
        "rows compared": f"{sum(view['rows'] for view in report.views.values()):,} and "
        f"{sum(view['sent'] for view in by_sent):,}",
        "rows that differ": f"{report.differing:,}",
        "steps": ", ".join(f"{name} {taken:.0f} s" for name, taken in report.seconds.items()),
    }
    if live := report.live:
        figures["live speed application"] = (
            f"killed at lsn {live['before']:,}, back with everything read after {live['seconds']:.1f} s, "
            f"at lsn {live['after']:,}"
        )
    return figures


def _tables(report: Report) -> RenderableType:
    about = Table(title=f"drill {report.drill}", show_header=False, title_justify="left")
    about.add_row("result", "it holds" if report.holds else "IT DOES NOT HOLD")
    about.add_row("started", plain(f"{report.began_at} by {report.by}"))
    for name, value in _figures(report).items():
        about.add_row(name, Text(value))
    if report.failed:
        about.add_row("did not come to its end", plain(report.failed))
    return Group(about, _broken(report), _views(report), _laws(report))


def _broken(report: Report) -> RenderableType:
    said = [f"{found['invariant']} {found['law']}: {row}" for found in report.broken for row in found["first"]]
    return Text("\n".join(map(printable, said)), "bold red")


def _views(report: Report) -> Table:
    names = ("rows, by the log", "rows, by what was sent", "differing", "note")
    table = Table("view", *names, title="what readers saw, against what they should see", title_justify="left")
    for name, view in report.views.items():
        sent = "others decide it" if view["sent"] is None else f"{view['sent']:,}"
        table.add_row(Text(name), f"{view['rows']:,}", sent, f"{view['differing']:,}", plain(view["note"]))
    return table


def _laws(report: Report) -> Table:
    table = Table("", "law", "state", "checked", "note", title="the other laws", title_justify="left")
    live = [{**found, "law": f"live: {found['law']}"} for found in (report.live or {}).get("findings", ())]
    for found in (*(found for found in report.findings if found["invariant"] != "I3"), *live):
        checked = f"{found['checked']:,} {found['unit']}"
        table.add_row(found["invariant"], Text(found["law"]), found["state"], checked, plain(found["note"]))
    return table
