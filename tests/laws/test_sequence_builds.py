"""Mode `changed` of sequence views: builds upon builds make the tables of one full build, whatever the horizon.

The stored rows begin at a horizon that grows from build to build, and rows from before it arrive late: their keys are
replayed from all rows. 3,000 cases per example, as in sequence_cases.py.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.engine import sequence_replay
from spark_jobs.expressions.dialect import listed
from tests.depth import examples
from tests.laws.sequence_cases import LSNS, Connection, D, connection, described, differing
from tests.laws.sequence_views import SUBJECTS, Subject

CASES = 3_000
each_view = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=list(SUBJECTS))


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[int, float]]]:
    """A seed, and builds: ascending cuts up to the last lsn, each with a horizon as a share of the time."""
    cuts = sorted({*draw(st.lists(st.integers(1, LSNS), min_size=1, max_size=3)), LSNS})
    shares = sorted(draw(st.lists(st.floats(0, 1), min_size=len(cuts), max_size=len(cuts))))
    return draw(st.integers(0, 2**32 - 1)), list(zip(cuts, shares, strict=True))


@each_view
@given(history=histories())
@settings(max_examples=examples(3))
def test_builds_upon_builds_are_one_full_build(subject: Subject, history: tuple[int, list[tuple[int, float]]]) -> None:
    seed, builds = history
    with connection(subject, seed, CASES) as con:
        wrong = chain_differs(con, subject, builds)
        assert not wrong, described(con, wrong)


# Of a join every row stays stored, so that no key is deep.
CLOSING = {name: subject for name, subject in SUBJECTS.items() if name != "an inner join"}


@pytest.mark.parametrize("subject", CLOSING.values(), ids=list(CLOSING))
def test_without_the_deep_keys_the_law_is_broken(subject: Subject) -> None:
    with connection(subject, 7, CASES) as con:
        assert chain_differs(con, subject, [(2, 0.5), (LSNS, 0.5)], heed_deep=False)


def chain_differs(
    con: Connection, subject: Subject, builds: list[tuple[int, float]], *, heed_deep: bool = True
) -> list[Any]:
    """Keys whose tables after all builds are not those of a full build at the last cut and horizon."""
    done, stored_from = 0, 0
    for cut, share in builds:
        horizon = int(share * subject.steps) * subject.step
        queries = (
            grown(con, subject, done, cut, stored_from, heed_deep=heed_deep) if done else scratch(con, subject, cut)
        )
        write(con, queries, "built", horizon)
        done, stored_from = cut, horizon
    write(con, scratch(con, subject, done), "full", stored_from)
    wrong: set[Any] = set()
    for part, columns in {"rows": ["lsn", *subject.view.row_kinds], "results": [*subject.view.result_kinds]}.items():
        names = listed([*columns, "stretch_end"], D)
        wrong.update(differing(con, f"SELECT {names} FROM built_{part}", f"SELECT {names} FROM full_{part}"))
    return sorted(wrong)


def scratch(con: Connection, subject: Subject, cut: int) -> tuple[str, str]:
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {all_rows(subject, cut)}")
    return sequence_replay.replayed(con, subject.view, "fresh")


def grown(
    con: Connection, subject: Subject, done: int, cut: int, stored_from: int, *, heed_deep: bool
) -> tuple[str, str]:
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {all_rows(subject, cut)} AND r.lsn > {done}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE deep AS {sequence_replay.deep_keys('fresh', stored_from)}")
    if heed_deep:
        con.execute(f"INSERT INTO fresh {all_rows(subject, done)} AND r.key IN (FROM deep)")
    built = ("built_rows", "built_results")
    return sequence_replay.replayed(con, subject.view, "fresh", built, "deep" if heed_deep else None)


def all_rows(subject: Subject, cut: int) -> str:
    names = listed(["lsn", *subject.view.row_kinds], D)
    return f"SELECT {names} FROM everything r WHERE r.lsn <= {cut}"


def write(con: Connection, queries: tuple[str, str], into: str, horizon: int) -> None:
    """The tables <into>_rows, from the horizon on, and <into>_results."""
    rows, results = queries
    con.execute(f"CREATE OR REPLACE TEMP TABLE next_rows AS SELECT * FROM ({rows}) WHERE stretch_end >= {horizon}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE next_results AS {results}")
    for part in ("rows", "results"):
        con.execute(f"CREATE OR REPLACE TEMP TABLE {into}_{part} AS FROM next_{part}")
