"""`tidemark drill`: a game day. A shadow platform is disturbed and killed, and must serve what it should.

The live platform is only read, unless --kill-live is said. Exit codes: 0 it holds; 1 it does not, did not come to its
end, or was refused; 2 wrong usage; 75 another drill is at work, try later.
"""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from random import SystemRandom
from types import FrameType
from typing import TYPE_CHECKING

import click
import psutil

from spark_jobs.cli.step import by_option, json_option, ledger_step, refuse, run_id_of_option
from spark_jobs.ledger.store import Busy, LedgerError, Store
from spark_jobs.orchestration.interface import EXERCISES
from spark_jobs.settings import settings

if TYPE_CHECKING:
    from infra.embedded.shadow import Shadow
    from spark_jobs.cli.drill_report import Report
    from spark_jobs.drill.slice_of_log import Slice

NEEDED_MB = 4096
"""What a shadow platform takes at most, with some to spare."""
NICE = 10
"""The live platform goes first."""
SEEDS = 2**31


def _now() -> str:
    return f"drill-{datetime.now(UTC):%Y%m%d-%H%M%S}"


@click.command()
@click.option(
    "--run-id", default=_now, callback=run_id_of_option, help="Names the drill and its page; default: the time."
)
@click.option(
    "--records", type=click.IntRange(100, 200_000), default=20_000, show_default=True, help="The last so many."
)
@click.option("--from-lsn", type=click.IntRange(1), help="Of a range of lsns, from this one on.")
@click.option("--to-lsn", type=click.IntRange(1), help="Its last lsn; by default the first.")
@click.option(
    "--seed", type=click.IntRange(0, SEEDS), help="The same disturbances as another drill; by default new ones."
)
@click.option("--only", "exercises", multiple=True, type=click.Choice(EXERCISES), help="May be repeated; default: all.")
@click.option("--kills", type=click.IntRange(1, 20), default=4, show_default=True, help="Of the shadow's application.")
@click.option("--kill-live", is_flag=True, help="Kill the LIVE speed application too, once: its readers wait a while.")
@by_option
@json_option
def drill(
    run_id: str,
    records: int,
    from_lsn: int | None,
    to_lsn: int | None,
    seed: int | None,
    exercises: tuple[str, ...],
    kills: int,
    kill_live: bool,
    by: str,
    as_json: bool,
) -> None:
    """Disturb and kill a shadow platform with a slice of the log, and prove that it serves what it should.

    A copy of the newest records (or of a range of lsns) goes to a platform of its own, below the home's folder `drill`,
    with repeats, in another order and with malformed records between; its speed application is killed around its
    commits; a batch run builds. Then all views are compared, row by row. Nothing of it reaches this platform.
    """
    from spark_jobs.cli import drill_live, drill_report

    if to_lsn is not None and (from_lsn is None or to_lsn < from_lsn):
        raise click.UsageError("--to-lsn goes with --from-lsn, and does not lie before it")
    wanted = [one for one in EXERCISES if not exercises or one in exercises]
    say = partial(click.echo, err=as_json)
    with _alone() as store:
        _refuse_little_memory()
        if kill_live:
            drill_live.victim(settings(), store)  # refused before anything is begun
        lsns = None if from_lsn is None else (from_lsn, to_lsn or from_lsn)
        taken = _slice(records, lsns)
        report = _begun(run_id, by, SystemRandom().randrange(SEEDS) if seed is None else seed, wanted, taken)
        _drilled(report, taken, kills, say)
        if kill_live and report.failed is None:
            _kill_live(report, store)
        page = drill_report.written(report)
    for line in (*drill_report.lines(report), f"page: {page.as_uri()}"):
        say(line)
    if as_json:
        click.echo(json.dumps(report.as_json(), default=str, indent=2))
    sys.exit(0 if report.holds else 1)


@contextmanager
def _alone() -> Iterator[Store]:
    """One drill of a home at a time."""
    settings().run_dir.mkdir(parents=True, exist_ok=True)
    with ledger_step() as store, (settings().run_dir / "drill.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy("another drill is at work") from error
        yield store


def _refuse_little_memory() -> None:
    """The system would end the live platform for want of it."""
    free = psutil.virtual_memory().available // 2**20
    if free < NEEDED_MB:
        refuse(f"a drill takes up to {NEEDED_MB} MB of memory; this machine has {free} to spare")


def _slice(records: int, lsns: tuple[int, int] | None) -> "Slice":
    from spark_jobs.drill.slice_of_log import NothingToTake, taken

    try:
        return taken(records, lsns)
    except NothingToTake as error:
        refuse(str(error))


def _begun(name: str, by: str, seed: int, exercises: list[str], taken: "Slice") -> "Report":
    from spark_jobs.cli.drill_report import Report

    began = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Report(name, by, seed, exercises, taken.lsns, len(taken.records), taken.left_out, began)


def _drilled(report: "Report", taken: "Slice", kills: int, say: partial[None]) -> None:
    """Play, on a shadow platform that is gone afterwards, however it ends."""
    from infra.embedded.shadow import Shadow
    from spark_jobs.cli import drill_play
    from spark_jobs.drill.disturbances import KILL, REBUILD, disturbed

    os.nice(NICE)
    sendings = disturbed(taken.records, report.exercises, report.seed)
    shadow = Shadow(settings())
    _removed_when_stopped(shadow)
    try:
        number = kills if KILL in report.exercises else 0
        drill_play.play(shadow, sendings, number, REBUILD in report.exercises, report, say)
    except Exception as error:
        report.failed = str(error) or repr(error)
    finally:
        shadow.remove()


def _kill_live(report: "Report", store: Store) -> None:
    """What comes of it is in the report, also where it does not come back."""
    from spark_jobs.cli import drill_live

    try:
        report.live = drill_live.killed(settings(), store)
    except LedgerError as error:
        report.failed = str(error)


def _removed_when_stopped(shadow: "Shadow") -> None:
    """A task that is stopped has seconds left; the removal goes on without it."""

    def stop(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            shadow.remove_later()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, stop)
