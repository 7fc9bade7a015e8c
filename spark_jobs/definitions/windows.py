"""Windows of an Aggregate: panes are stored, and the answer's windows are made from them.

partials per key and pane --rows--> (Hopping) once per window that holds the pane, (Trailing) those before `now`.
A pane is the stretch of `every` in which an event lies: `window_start(every, occurred_at)`, a key of the partial. As
size is a multiple of `every`, a window is a whole number of panes (panes: Li et al., SIGMOD Record 34, 2005).
"""

from dataclasses import dataclass
from datetime import datetime

from spark_jobs.definitions.spec import Hopping, Window
from spark_jobs.expressions.dialect import Dialect, exploded, instant, micros
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.expressions.kinds import Kind

PANE = "pane"
START, END = "window_start", "window_end"
_BACK = "pane__back"  # no name of an author has two underscores in a row


def moment(d: Dialect, now: datetime | None) -> str:
    """SQL of the moment of the question; None: the engine's clock."""
    if now:
        return instant(str(since_epoch(now)), d)
    return "current_timestamp()" if d is Dialect.SPARK else "now()"


@dataclass(frozen=True)
class BoundWindow:
    """A window with its lengths in microseconds."""

    declaration: Window
    size: int
    every: int

    @property
    def columns(self) -> dict[str, Kind]:
        """The served keys that take the place of the pane."""
        return {START: "TIMESTAMP", END: "TIMESTAMP"} if isinstance(self.declaration, Hopping) else {}

    def rows(self, d: Dialect, relation: str, now: datetime | None) -> str:
        """SELECT of the relation's rows, each with its window's columns. `now`: None for the engine's clock."""
        if not isinstance(self.declaration, Hopping):
            at = moment(d, now)
            since = instant(f"{micros(at, d)} - {self.size:d}", d)
            return f"SELECT * FROM {relation} WHERE {PANE} > {since} AND {PANE} <= {at}"
        steps = f"sequence(0L, {self.size - self.every:d}L, {self.every:d}L)"
        if d is Dialect.DUCKDB:
            steps = f"range(0, {self.size:d}, {self.every:d})"
        each = f"SELECT *, {exploded(steps, d)} AS {_BACK} FROM {relation}"
        start = f"{micros(PANE, d)} - {_BACK}"
        end = f"{start} + {self.size:d}"
        return f"SELECT *, {instant(start, d)} AS {START}, {instant(end, d)} AS {END} FROM ({each})"

    def panes(self, d: Dialect, start: datetime | None, end: datetime | None, now: datetime) -> str:
        """SQL that is true for the panes of the windows that begin at `start` and end at `end`, where given."""
        if not isinstance(self.declaration, Hopping):
            upper = since_epoch(now)
            return f"{micros(PANE, d)} > {upper - self.size:d} AND {micros(PANE, d)} <= {upper:d}"
        begins = [since_epoch(start)] if start else []
        begins += [since_epoch(end) - self.size] if end else []
        tests = [f"{micros(PANE, d)} >= {at:d} AND {micros(PANE, d)} < {at + self.size:d}" for at in begins]
        return " AND ".join(tests) or "true"
