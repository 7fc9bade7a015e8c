"""The laws that hold for every view, tried on random histories of its events; call them by `testing.cases.check`.

view -> histories (Hypothesis, from the schemas) -> answers by several ways -> nothing, or LawBroken with the smallest
history that breaks a law, as a case folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from math import isclose
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.engine import sequences
from spark_jobs.engine.chained_view import Served, stored_of
from spark_jobs.engine.partials import compute
from spark_jobs.engine.record_outcomes import RECORD_OUTCOME
from spark_jobs.registry.views import project_views
from spark_jobs.testing import cases
from spark_jobs.testing.cases import Answer, Batches, D, Oracle
from spark_jobs.testing.strategies import START, STEPS, Source, histories

PHASES = (Phase.generate, Phase.shrink)
"""A history that breaks a law is made smaller, which takes longest."""


class LawBroken(AssertionError):
    """Which law, what differs, and the history as the text of a case folder."""


@dataclass
class Tried:
    """What `check` has tried: laws hold easily where rows never meet another one of their key."""

    histories: int = 0
    rows: int = 0
    met: int = 0

    def __str__(self) -> str:
        return f"{self.histories:,} histories, {self.rows:,} rows, {self.met:,} of them met another one of their key"

    def add(self, view: Served, facts: cases.Facts) -> None:
        """Count one history: the view's rows, or per micro-batch its partials."""
        stored = stored_of(view)
        rows = compute({**facts, **cases.side_inputs(stored, {}, facts)}, [stored]).partials[stored.column]
        of_keys = rows.group_by([*stored.stored_keys]).aggregate([("lsn", "count")])["lsn_count"].to_pylist()
        self.histories += 1
        self.rows += rows.num_rows
        self.met += sum(count for count in of_keys if count > 1)


@dataclass(frozen=True)
class Trial:
    """The arguments of `check`."""

    view: Served
    oracle: Oracle | None
    values: Mapping[str, Sequence[Any]]
    step: timedelta
    tolerance: float
    unique: frozenset[str] = frozenset()

    @property
    def is_of_outcomes(self) -> bool:
        """Whether the view asks what became of records, repeated ones among them."""
        return RECORD_OUTCOME in stored_of(self.view).event_types

    @property
    def now(self) -> datetime:
        """The moment of the question."""
        return START + self.step * (STEPS // 2)

    def answer(self, built: cases.Facts, new: cases.Facts) -> Answer:
        return cases.answer(self.view, project_views(), built, new, self.now)


def step_of(view: Served) -> timedelta:
    """A grid of times on which the edges of windows and stretches are met."""
    stored = stored_of(view)
    if isinstance(stored, SequenceView):
        reaches = [row.reach for row in stored.rows if row.reach]
        return timedelta(microseconds=min(reaches) // 2) if reaches else timedelta(minutes=10)
    return timedelta(microseconds=stored.window.every) if stored.window else timedelta(minutes=10)


def try_laws(trial: Trial, examples: int, seed_: int) -> Tried:
    """Raises LawBroken for the smallest history found that breaks a law."""
    tried = Tried()

    @seed(seed_)
    @settings(max_examples=examples, database=None, deadline=None, print_blob=False,
              phases=PHASES, suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(histories(_source(trial)))
    def hold(history: tuple[Batches, Batches]) -> None:
        for law, answered, expected in _laws(trial, *history):
            if not _agree(answered, expected, trial.tolerance):
                raise LawBroken(_told(trial, history[1], law, answered, expected, seed_))
        tried.add(trial.view, cases.facts(history[0]))

    hold()
    return tried


def _source(trial: Trial) -> Source:
    """The event types of the view, and of those that it looks up; the fields that it uses vary."""
    stored, known = stored_of(trial.view), project_contracts()
    event_types = [*stored.event_types]
    if isinstance(stored, AggregateView):
        used = stored.used_columns
        for lookup in stored.lookups.values():
            event_types += project_views().by_name[lookup.view].event_types
    else:
        expressions = chain(*((row.key, row.ts, row.where, *row.columns.values()) for row in stored.rows))
        used = frozenset[str]().union(*(expression.columns for expression in expressions if expression))
    types = [known.of(name) for name in dict.fromkeys(event_types)]
    if trial.is_of_outcomes:  # records of any type will do: of one with events, and of a changelog
        types = [next(c for c in known if not c.is_outcome and c.compacted is kind) for kind in (False, True)]
    return Source(types, used, trial.values, trial.step, trial.is_of_outcomes, trial.unique)


def _laws(trial: Trial, once: Batches, repeated: Batches) -> Iterator[tuple[str, Answer, Answer]]:
    """The laws in words, each with what was answered and what should have been."""
    facts = cases.facts(repeated)
    whole = trial.answer({}, facts)
    if not trial.is_of_outcomes:
        yield "an event that comes twice counts once", whole, trial.answer({}, cases.facts(once))
    if trial.oracle:
        expected = trial.oracle(repeated if trial.is_of_outcomes else once)
        yield "the answer is the oracle's", whole, cases.in_order(dict(row) for row in expected)
    for cut in range(1, len(repeated) + 1):
        answered = trial.answer(*cases.until(facts, cut))
        yield f"batch up to lsn {cut} and speed after it are what speed alone is", answered, whole
    stored = stored_of(trial.view)
    if stored.side_inputs:
        return  # side inputs go by micro-batches
    together = cases.facts([list(chain(*repeated))])
    yield "how events are divided into micro-batches changes no answer", trial.answer({}, together), whole
    if facts and isinstance(stored, SequenceView) and stored.declaration.resolve:
        yield from _undivided(stored, facts)


def _undivided(view: SequenceView, facts: cases.Facts) -> Iterator[tuple[str, Answer, Answer]]:
    """L1 of docs/sequences.md: an instant that nothing crosses divides rows and results."""
    facts_of = {name: f"facts_{name}" for name in facts}
    tables = {relation: facts[name] for name, relation in facts_of.items()}
    every = cases.plans().ask(sequences.rows(view, facts_of), tables)
    for at in sorted(set(every["ts"].to_pylist()))[1:]:
        is_before = pc.less(every["ts"], at)
        before, after = every.filter(is_before), every.filter(pc.invert(is_before))
        if not _is_quiet(view, before, at):
            continue
        law = (
            f"what comes after a quiet instant (ts {at}) does not depend on what was before it; "
            "see docs/sequences.md: no ordinals per key, no session before, no patterns that exclude each other"
        )
        parts = _resolved(view, before) + _resolved(view, pa.concat_tables([after, _in_force(view, before)]))
        yield law, cases.in_order(_resolved(view, every)), cases.in_order(parts)


def _resolved(view: SequenceView, rows: pa.Table) -> Answer:
    results: Answer = cases.plans().ask(sequences.resolve(view, D, "part"), {"part": rows}).to_pylist()
    return results


def _is_quiet(view: SequenceView, before: pa.Table, at: int) -> bool:
    """No interval of the rows before the instant, nor of their results, reaches it."""
    reach = {row.kind: row.reach or 0 for row in view.rows}
    ends = [ts + reach[kind] for ts, kind in zip(*(before[name].to_pylist() for name in ("ts", "kind")), strict=True)]
    ends += [result["closes_at"] for result in _resolved(view, before) if result["closes_at"] is not None]
    return all(end < at for end in ends)


def _in_force(view: SequenceView, before: pa.Table) -> pa.Table:
    """Carried rows that hold after these: of each key and kind the last."""
    kinds = ", ".join(f"'{row.kind}'" for row in view.rows if row.declaration.carried)
    if not kinds:
        return before.schema.empty_table()
    last = "QUALIFY 1 = row_number() OVER (PARTITION BY key, kind ORDER BY ts DESC, tie DESC)"
    return cases.plans().ask(f"SELECT * FROM part WHERE kind IN ({kinds}) {last}", {"part": before})


def _agree(answered: Answer, expected: Answer, tolerance: float) -> bool:
    if [row.keys() for row in answered] != [row.keys() for row in expected]:
        return False
    values = ((row[name], other[name]) for row, other in zip(answered, expected, strict=True) for name in row)
    return all(
        isclose(a, b, rel_tol=tolerance) if isinstance(a, float) and isinstance(b, float) else a == b for a, b in values
    )


def _told(trial: Trial, batches: Batches, law: str, answered: Answer, expected: Answer, seed_: int) -> str:
    folder = f"tests/views/{trial.view.name}/<name>"
    rows: Any = [{name: _plain(value) for name, value in row.items()} for row in expected]
    events = yaml.safe_dump(list(batches), sort_keys=False, width=200)
    expect = yaml.safe_dump({"now": _plain(trial.now), "rows": rows}, sort_keys=False, width=200)
    return (
        f"{trial.view.name}: it should hold that {law}.\nfound:    {answered}\nexpected: {expected}\n"
        f"The smallest history that was found (seed={seed_}), as a case:\n"
        f"--- {folder}/events.yaml\n{events}--- {folder}/expect.yaml\n{expect}"
    )


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
