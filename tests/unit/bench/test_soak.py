"""SOAK in short: weeks in a minute leave few files, short logs, and the right answers."""

import pytest

from spark_jobs.settings import settings
from spark_jobs.speed import log_compaction, partials_table, tiers
from tests.bench import soak as bench

DAYS, NIGHTS = 20, 7
KINDS = 6
"""Three views, and control rows: coverage, ids, and what repeats or is rejected."""


@pytest.mark.slow
def test_d1_three_weeks_leave_few_files_and_the_answers_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """SOAK itself compares every answer at its end with the log's."""
    monkeypatch.setattr(tiers, "MANY_COMMITS", 1)
    monkeypatch.setattr(log_compaction, "MANY_LOG_FILES", 8)
    monkeypatch.setattr(bench, "NIGHTS_KEPT", NIGHTS)
    monkeypatch.setattr(partials_table, "settings", lambda: settings().model_copy(update={"id_window_max_ids": 1}))
    told: list[str] = []
    figures = {row["figure"]: row for row in bench.soak(DAYS, DAYS, told.append)}
    assert figures["files of speed.partials"]["most"] <= KINDS * (1 + 8 + 3), "the last hours, days, weeks"
    assert figures["files of master.log"]["most"] <= 8 * 3
    assert figures["_delta_log of speed.partials"]["days"] == len(told) == DAYS
    first_lsn = int(told[-1].split("lsn ")[1].split()[0])
    assert DAYS - NIGHTS < first_lsn <= DAYS, "what the nights before those that are kept have published is trimmed"
