"""How a drill goes: a shadow platform is fed with a disturbed slice, killed, rebuilt, and held to what was sent.

sendings -> the shadow's Kafka -> its speed application, which is killed on the way -> batch run -> verify -> Report
"""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from sqlalchemy import URL

from infra.embedded.shadow import PARTS, Done, Shadow
from spark_jobs.cli.drill_report import BY_SENT, Report
from spark_jobs.contracts import row_types
from spark_jobs.drill import crash_points, sent
from spark_jobs.drill.disturbances import Role, Sending
from spark_jobs.ledger import store as ledger
from spark_jobs.messaging.producer import Producer, Sent, connected
from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.speed.status import COMPONENT
from spark_jobs.storage import tables

PATIENCE_SECONDS = 600.0
LAST_LINES = 15
BEFORE_BUILD = 2 / 3
"""The share of the records that the batch run builds; the speed layer adds the others to its answer."""
RUN = "drill"
Say = Callable[[str], None]


class DrillFailed(Exception):
    """The drill did not come to its end; the text says where, and what was said there."""


def play(shadow: Shadow, sendings: Sequence[Sending], kills: int, rebuild: bool, report: Report, say: Say) -> None:
    """Fill in the report. Raises DrillFailed, or whatever else it meets."""
    with _step("start the shadow platform", report, say):
        shadow.prepare()
        _run(shadow, "up", *PARTS)
    cut = round(len(sendings) * (BEFORE_BUILD if rebuild else 1))
    points = crash_points.chosen(kills, report.seed)
    before = points[:-1] if rebuild else points
    with Stream(shadow, points, report, say) as stream:
        with _step("send, kill, catch up", report, say):
            stream.begin()
            stream.feed(sendings[:cut], before)
        if rebuild:
            with _step("build, audit, publish", report, say):
                _build(shadow)
            with _step("send, kill, catch up past the build", report, say):
                stream.feed(sendings[cut:], points[len(before) :])
        report.log |= _log_of(shadow)
        with _step("compare", report, say):
            report.findings = _verified(shadow)
            report.as_sent = [*map(_of_sent, _verified(shadow, "--only", "I3", oracle=sent.ORACLE))]


@contextmanager
def _step(name: str, report: Report, say: Say) -> Iterator[None]:
    say(f"{name} ...")
    began = time.monotonic()
    yield
    report.seconds[name] = round(time.monotonic() - began, 1)
    say(f"{name}: {report.seconds[name]:.1f} s")


class Stream:
    """The shadow's speed application, and the producer that feeds it. points: where it is going to be killed."""

    def __init__(self, shadow: Shadow, points: Sequence[str], report: Report, say: Say) -> None:
        self._shadow, self._points, self._report, self._say = shadow, list(points), report, say
        self._sent, self._count = list[tuple[Sending, Sent]](), Counter[Role]()
        self._process: subprocess.Popen[bytes] | None = None
        at = URL.create("sqlite+pysqlite", database=str(shadow.settings.home / "ledger.db"))
        self._store = ledger.open(at)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._store.close()

    def begin(self) -> None:
        """Start the application, so that it can meet its next point, and wait until it has all that is sent."""
        in_process = not self._points or self._points[0] in crash_points.IN_PROCESS
        self._process = self._shadow.application(crash_points.__name__, in_process)
        self._report.starts += 1
        self._await(self._has_all)

    def feed(self, sendings: Sequence[Sending], points: Sequence[str]) -> None:
        """Send by portions; in each but the last one the application is killed, and started again."""
        size = -(-len(sendings) // (len(points) + 1))
        for number, point in enumerate(points):
            crash_points.arm(self._shadow.settings, point)
            self._send(sendings[number * size : (number + 1) * size])
            self._await(lambda: self._process is None or self._process.poll() is not None)
            self._recover(point)
        self._send(sendings[len(points) * size :])
        self._await(self._has_all)

    def _send(self, sendings: Sequence[Sending]) -> None:
        with Producer(connected(self._shadow.settings)) as producer:
            places = list[Sent]()
            producer.send((sending.record for sending in sendings), places.append)
        self._sent += zip(sendings, places, strict=True)
        self._count.update(sending.role for sending in sendings)
        self._report.sent = {role.value: self._count[role] for role in Role}
        sent.write(self._sent, self._shadow.settings.home)

    def _recover(self, point: str) -> None:
        assert self._process is not None
        if self._process.wait() != -signal.SIGKILL:
            raise DrillFailed(f"the speed application ended by itself, {point}: {self._last_words()}")
        began = time.monotonic()
        self._points.remove(point)
        self.begin()
        took = round(time.monotonic() - began, 1)
        self._report.kills.append({"point": point, "seconds": took})
        self._say(f"killed {point}; everything is read and computed {took:.1f} s later")

    def _has_all(self) -> bool:
        """Whether what was sent is in the log and in the partials, and readers have their names for it."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise DrillFailed(f"the speed application ended: {self._last_words()}")
        beat = self._store.heartbeat(COMPONENT)
        if beat is None or (beat.payload["pid"], beat.payload["state"]) != (self._process.pid, "running"):
            return False
        return bool(beat.payload["is_named"] and not beat.payload.get("filling")) and self._landed(beat.payload["lsn"])

    def _landed(self, lsn: int) -> bool:
        """Up to this lsn, everything; a record that was lost would be missing for ever, and end in DrillFailed."""
        rows = _records(self._shadow)
        places = {(row["topic"], row["partition"], row["offset"]) for row in rows if row["lsn"] <= lsn}
        return all((at.topic, at.partition, at.offset) in places for _, at in self._sent)

    def _await(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > until:
                raise DrillFailed(f"the speed application has not come so far: {self._last_words()}")
            time.sleep(0.25)

    def _last_words(self) -> str:
        log = self._shadow.settings.log_dir / "speed.log"
        return "\n".join(log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:])


def _records(shadow: Shadow) -> list[dict[str, Any]]:
    table = f"{shadow.settings.warehouse}/{tables.MASTER_LOG.replace('.', '.db/')}"
    columns = [name for name, _ in row_types.COORDINATES]
    rows = DeltaTable(table).to_pyarrow_dataset().to_table(columns, ds.field("kind") == row_types.RECORD_ROW)
    listed: list[dict[str, Any]] = rows.to_pylist()
    return listed


def _log_of(shadow: Shadow) -> dict[str, int]:
    lsns = [row["lsn"] for row in _records(shadow)]
    current = json.loads(_run(shadow, "batch", "status", "--json").stdout)["publications"]
    return {"records": len(lsns), "head": max(lsns), "cut": max((one["cut"] for one in current), default=0)}


def _build(shadow: Shadow) -> None:
    for step in BATCH_STEPS:
        _run(shadow, "batch", step, "--run-id", RUN)


def _verified(shadow: Shadow, *options: str, oracle: str | None = None) -> list[dict[str, Any]]:
    """The findings of `tidemark verify`, whatever it found."""
    done = shadow.run("verify", "--all", "--json", *options, also={"TIDEMARK_ORACLE": oracle} if oracle else None)
    try:
        findings: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError as error:
        raise DrillFailed(f"verify: {_end_of(done)}") from error
    return findings


def _of_sent(found: dict[str, Any]) -> dict[str, Any]:
    """A finding that says whose word it is: here the oracle is what was sent."""
    first = [row.replace("(the oracle)", "(sent)").replace("only in the oracle", "only sent") for row in found["first"]]
    return found | {"first": first, "note": found["note"].replace("by the oracle", BY_SENT, 1)}


def _run(shadow: Shadow, *arguments: str) -> Done:
    done = shadow.run(*arguments)
    if done.returncode:
        raise DrillFailed(f"`tidemark {' '.join(arguments)}` ended with exit code {done.returncode}: {_end_of(done)}")
    return done


def _end_of(done: Done) -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-LAST_LINES:])
