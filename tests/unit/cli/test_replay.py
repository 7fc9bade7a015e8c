"""`tidemark replay` as a program sees it: words, exit codes, and what the ledger keeps."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main, replay, replay_report
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Run
from spark_jobs.orchestration.interface import NOTHING_DIFFERS
from spark_jobs.registry.views import Views, project_views
from spark_jobs.settings import settings

PLAN = ("replay", "plan", "--run-id", "again", "--reason=a test", "--by=ada")


def tidemark(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, arguments, env={"COLUMNS": "160"})
    return done.exit_code, done.output


@pytest.fixture(autouse=True)
def _home(platform_home: Path) -> None:
    """A platform that nothing has landed on."""


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--view=orders_by_day"], 2, "--view goes with --from facts"),
        (["--event-type=order_placed"], 2, "--event-type goes with --from facts or --quarantined"),
        (["--from=facts", "--event-type=nothing"], 1, "no event type is called nothing"),
        (["--from=facts", "--view=nothing"], 1, "no view is called nothing"),
        (["--from=facts", "--promote"], 2, "--promote goes with --view"),
        (["--from=facts", "--view=trades", "--promote"], 1, "trades: there is no version but the one that is served"),
        (["--from=facts", "--from-lsn=3"], 1, "facts are chosen by days"),
        (["--to-day=2026-03-01"], 2, "--to-day goes with --from-day"),
        (["--from-day=2026-03-01", "--to-lsn=3"], 2, "--to-lsn goes with --from-lsn"),
        (["--from-day=2026-03-01", "--to-time=2026-03-01T00:00:00Z"], 2, "--to-time goes with --from-time"),
        (["--from-day=2026-03-01", "--because=json"], 2, "--because goes with --quarantined"),
        (["--from-day=2026-03-02", "--to-day=2026-03-01"], 2, "lies before --from-day"),
        (["--from-lsn=3", "--to-lsn=2"], 2, "lies before --from-lsn"),
        (["--from-time=2026-03-01T00:00:00Z"], 1, "there is nothing in that range"),
        (["--from-time=yesterday"], 2, "is not an ISO 8601 time"),
        (["--quarantined"], 1, "there is nothing in that range"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_and_nothing_is_kept(options: list[str], code: int, said: str) -> None:
    found, output = tidemark(*PLAN, *options)
    assert found == code and said in " ".join(output.split())
    assert ledger.open().replays() == []


def test_an_event_type_without_a_view_does_not_mean_all_views(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Views((project_views()["orders_by_day"],))
    monkeypatch.setattr(replay, "project_views", lambda: few)
    code, said = tidemark(*PLAN, "--from=facts", "--event-type=sentence_posted")
    assert code == 1 and "no view is over sentence_posted" in said and ledger.open().replays() == []


def test_a_plan_shows_what_it_would_touch_and_begins_no_run() -> None:
    code, said = tidemark(*PLAN, "--from=facts", "--event-type=order_placed", "--from-day=2026-03-01", "--json")
    found = json.loads(said)
    assert code == 0 and (found["state"], found["asked_by"], found["reason"]) == ("planned", "ada", "a test")
    views = {view["view"]: view["how"] for view in found["preview"]["views"]}
    assert views["orders_by_day"] == "1 days from their facts" and views["trades"] == "from all facts"
    assert "word_count" not in views
    assert {"stg_store_days", "stg_trades"} <= {*found["preview"]["marts"]}
    assert ledger.open().run("again") is None
    code, said = tidemark("replay", "list")
    assert code == 0 and "again" in said and "planned" in said
    assert tidemark(*PLAN, "--from=facts")[0] == 1, "the name asks for something else"


def test_a_range_of_days_is_one_run() -> None:
    assert tidemark(*PLAN, "--from-day=2026-03-01", "--to-day=2026-03-30")[0] == 0
    code, said = tidemark("batch", "plan", "--run-id", "again")
    assert code == 0 and "days to rebuild: 2026-03-01, " in said
    run = ledger.open().run("again")
    assert run is not None and len(run.days) == 30


def test_a_replay_outside_of_its_hours_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    tidemark(*PLAN)
    monkeypatch.setenv(
        "TIDEMARK_REPLAY_HOURS", f"{(datetime.now(UTC).hour + 2) % 24}-{(datetime.now(UTC).hour + 3) % 24}"
    )
    settings.cache_clear()
    code, said = tidemark("replay", "run", "again")
    assert code == 75 and "replays begin in the hours" in said
    assert ledger.open().run("again") is None


def test_commands_name_the_replay_that_is_not_there_or_given_up() -> None:
    for words in (("run",), ("compare",), ("show",), ("approve",), ("cancel",)):
        code, said = tidemark("replay", *words, "nothing")
        assert code == 1 and "no replay is called nothing" in said
    tidemark(*PLAN)
    assert tidemark("replay", "cancel", "again", "--by=bob")[0] == 0
    for words in (("run",), ("compare",), ("approve",), ("cancel",)):
        code, said = tidemark("replay", *words, "again")
        assert code == 1 and "replay again was cancelled by bob" in said
    assert "cancelled" in tidemark("replay", "show", "again")[1]


def test_a_replay_that_built_nothing_is_not_compared() -> None:
    tidemark(*PLAN)
    code, said = tidemark("replay", "compare", "again")
    assert code == 1 and "has not built anything to compare" in said


def test_an_audit_that_stopped_it_is_made_again() -> None:
    tidemark(*PLAN)
    store = ledger.open()
    store.begin_run(Run(run_id="again", cut=5))
    store.progress("again", "audit")
    store.record_audit("again", passed=False)
    code, said = tidemark("replay", "run", "again")
    assert code == 1 and "run again has not built" in said, "the audit says so, not the comparison"


def test_the_page_leads_to_all_rows_and_takes_nothing_in_them_for_markup() -> None:
    differs = {"view": "orders_by_day", "rows": 9, "gone": 1, "new": 2, "other": 3, "file": "orders_by_day.csv"}
    differs["causes"] = {"facts_replaced": 4, "computed_otherwise": 2}
    differs["greatest"] = ["name=<script>alert(1)</script>[bold]: orders 1 (published) 2 (replayed)"]
    tidemark(*PLAN)
    store = ledger.open()
    store.begin_run(Run(run_id="again", cut=5))
    store.record_differences("again", [differs])
    page = replay_report.written(store.asked_replay("again"), "waits for approval").read_text()
    assert 'href="orders_by_day.csv"' in page and "<script>" not in page and "[bold]" in page
    lines = [*replay_report.summary(store.asked_replay("again").differences or ())]
    assert (
        lines[0] == "orders_by_day: 6 rows differ (1 gone, 2 new, 3 other) of 9; 4 facts_replaced, 2 computed_otherwise"
    )
    assert "4 facts_replaced, 2 computed_otherwise" in page
    assert [*replay_report.summary([])] == [f"{NOTHING_DIFFERS}: every answer is the same"]
