"""`make bench`: DRAIN, FRESH, SERVE, VIEWS, KEYS, REBUILD, NIGHTS, SMALL, SOAK and UPTIME, as a table and as JSON.

Nothing is asserted about time: a run counts only where its answers are right, and then says what it took.
"""

import json
import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from spark_jobs.settings import ROOT
from tests.bench.drain import drain
from tests.bench.fresh import fresh
from tests.bench.keys import keys
from tests.bench.nights import nights
from tests.bench.rebuild import rebuild
from tests.bench.serve import serve
from tests.bench.small import small
from tests.bench.soak import soak
from tests.bench.uptime import uptime
from tests.bench.views import views

RESULTS = ROOT / "build/bench"
MANY_COLUMNS = 12
WIDTH_OF_FILES = 200


@click.command()
@click.argument(
    "names",
    nargs=-1,
    type=click.Choice(["drain", "fresh", "serve", "views", "keys", "rebuild", "nights", "small", "soak", "uptime"]),
)
@click.option("--events", default=4_000_000, show_default=True, help="DRAIN, VIEWS, KEYS: the backlog.")
@click.option("--rounds", default=2, show_default=True, help="DRAIN: turns of each peer.")
@click.option("--probes", default=100, show_default=True, help="FRESH: probes per rate.")
@click.option("--repeats", default=50, show_default=True, help="SERVE: times each query is asked.")
@click.option("--size", "sizes", multiple=True, type=int, help="REBUILD: events of the history; 1, 4 and 16 million.")
@click.option("--batches", default=20_000, show_default=True, help="SOAK: micro-batches.")
@click.option("--days", default=66, show_default=True, help="SOAK: days that they are spread over; 30 are kept.")
@click.option("--minutes", default=120, show_default=True, help="UPTIME: how long.")
@click.option("--rate", default=2_000, show_default=True, help="UPTIME: events a second.")
def main(
    names: tuple[str, ...],
    events: int,
    rounds: int,
    probes: int,
    repeats: int,
    sizes: tuple[int, ...],
    batches: int,
    days: int,
    minutes: int,
    rate: int,
) -> None:
    """Run the named benchmarks, or all."""
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES

    def say(line: str) -> None:
        console.print(line, style="dim", highlight=False)

    every: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "drain": lambda: drain(events, rounds, say),
        "fresh": lambda: fresh((1_000, 10_000), probes, say),
        "serve": lambda: serve(repeats, say),
        "views": lambda: views(events, (1, 5, 15, 30, 1_000), say),
        "keys": lambda: keys(events, say),
        "rebuild": lambda: rebuild(sizes or (1_000_000, 4_000_000, 16_000_000), say),
        "nights": lambda: nights((30, 3_650), say),
        "small": lambda: small(say),
        "soak": lambda: soak(batches, days, say),
        "uptime": lambda: uptime(minutes, rate, say),
    }
    for name in names or every:
        rows = every[name]()
        _show(console, name, rows)
        _keep(name, rows)


def _show(console: Console, name: str, rows: list[dict[str, Any]]) -> None:
    """A line per row; a line per column where there are many columns."""
    lines = [[key, *(row[key] for row in rows)] for key in rows[0]] if len(rows[0]) > MANY_COLUMNS else None
    table = Table(*([] if lines else rows[0]), title=name.upper(), show_header=lines is None)
    for line in lines or (row.values() for row in rows):
        table.add_row(*(f"{value:,.3f}" if isinstance(value, float) else str(value) for value in line))
    console.print(table)


def _keep(name: str, rows: list[dict[str, Any]]) -> None:
    now = datetime.now(UTC)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{name}-{now:%Y%m%dT%H%M%S}.json"
    file.write_text(json.dumps({"at": now.isoformat(), **machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
