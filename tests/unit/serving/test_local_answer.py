"""The answer from the tables' files equals the answer recomputed from the log, wherever the cut lies."""

from pathlib import Path

import pytest

from spark_jobs.ledger.source import Source
from spark_jobs.quality import recompute
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from tests.local_platform import Platform, market

VIEWS = ["orders_by_hour", "orders_by_colour", "orders_by_day", "sessions", "trades", "word_count", "bus_latest"]
UNBUILT = Source(None, None, 0, None)


@pytest.mark.parametrize("cut_at", [0, 3, 6])
def test_the_merged_answer_is_the_recomputed_one(platform_home: Path, cut_at: int) -> None:
    platform = Platform(VIEWS)
    sources = dict.fromkeys(VIEWS, UNBUILT)
    for number in range(6):
        if number == cut_at and number:
            sources = platform.build()
        platform.land(market(number))
    if cut_at == 6:
        sources = platform.build()
    merged = LocalAnswers(platform.views, sources, platform.lsn)
    again = recompute.facts(platform.lsn)
    for view in platform.views:
        again.register("served", merged.con.sql(merged.own(view)).to_arrow_table())
        found = compare(again, "FROM served", recompute.answer(again, view), shape_of(view))
        assert found.rows > 0, view.id
        assert found.differing == 0, found.first(("served", "recomputed"))
