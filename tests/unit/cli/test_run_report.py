"""What came of a run, view by view, by `batch show` and as the page that Airflow links."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main, run_report
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.store import Store
from tests.publishing import built


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    """A run with two views: one differs from speed for a known cause, the other could not be published."""
    opened = ledger.open()
    built(opened, "r1", cut=7, version=3)
    causes = {"view": "orders_by_day", "differing": 1204, "causes": {"late <b>": 1204}}
    opened.progress("r1", "audit", **{AGREEMENT: [causes, {"view": "word_count", "differing": 0, "causes": {}}]})
    publication = opened.begin_publication("batch", opened.built_sources("r1"), cut=7, run_id="r1")
    opened.finish_publication(publication.id)
    opened.progress("r1", "publish", held_back={"word_count": 9})
    opened.record_serving_sql("orders_by_day", "SELECT 1 < 2")
    yield opened
    opened.close()


def test_a_run_tells_what_came_of_each_view(store: Store) -> None:
    done = CliRunner().invoke(main, ["batch", "show", "r1", "--json"])
    found = json.loads(done.output)
    assert (found["state"], found["publication"], found["audit"]) == ("finished", 0, "passed, 0 warnings")
    by_day, words = found["views"]
    assert (by_day["view"], by_day["mode"], by_day["row_count"], by_day["causes"]) == (
        "orders_by_day", "full", 1, {"late <b>": 1204}
    )  # fmt: skip
    assert (by_day["readers"], words["readers"]) == ("publication 0", "held back: no partials at lsn 9")
    assert "1,204 late" in CliRunner().invoke(main, ["batch", "show", "r1"], env={"COLUMNS": "200"}).output


def test_the_page_has_a_row_per_view_leads_to_their_sql_and_takes_no_markup_from_data(store: Store) -> None:
    page = run_report.written(store, "r1")
    text, sql = page.read_text(), (page.parent.parent / "views.html").read_text()
    assert 'href="../views.html"' in text and "orders_by_day" in text and "orders_by_day" in sql
    assert "1,204 late &lt;b&gt;" in text and "<b>" not in text
    assert "SELECT 1 &lt; 2" in sql


def test_a_run_that_nobody_planned_is_named(store: Store) -> None:
    done = CliRunner().invoke(main, ["batch", "show", "r9"])
    assert done.exit_code == 1 and "no run is called r9; `tidemark batch status` lists them" in done.output
