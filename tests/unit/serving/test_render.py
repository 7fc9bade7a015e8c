"""The serving SQL: literals only, and nothing read that the answer does not need."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.definitions.spec import Trailing
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import project_views
from spark_jobs.serving.render import serving_sql
from tests.unit.registry.test_views import NAMES, aggregate, load

HORIZON = datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
VIEWS = project_views()
BUILT = {view.id: Source(3, 4, 12, HORIZON) for view in VIEWS}
UNBUILT = {view.id: Source(None, None, 0, None) for view in VIEWS}
each_view = pytest.mark.parametrize("view", list(VIEWS), ids=lambda view: view.id)


def tables_of(sql: str) -> set[str]:
    tree = sqlglot.parse_one(sql, read="spark")
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    return {f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.name not in own}


@each_view
def test_an_unbuilt_view_reads_the_speed_layer_alone(view: View) -> None:
    assert tables_of(serving_sql(view, UNBUILT, VIEWS)) == {"speed.partials"}


@each_view
def test_a_built_view_reads_its_batch_tables_at_their_versions(view: View) -> None:
    sql = serving_sql(view, BUILT, VIEWS)
    batch = {name for name in tables_of(sql) if name.startswith("batch.")}
    assert f"batch.{view.id}" in batch or batch == {f"batch.{view.id}_rows", f"batch.{view.id}_results"}
    assert sql.count("VERSION AS OF") >= len(batch)


@each_view
def test_the_speed_part_lies_between_cut_and_head(view: View) -> None:
    sql = serving_sql(view, BUILT, VIEWS, head=20)
    assert sql.count("FROM speed.partials") == sql.count("AND lsn > 12 AND lsn <= 20")
    assert f"WHERE view = '{view.column}' AND lsn > 12" in sql
    assert "lsn <=" not in serving_sql(view, BUILT, VIEWS)


def test_late_rows_of_a_sequence_are_left_out_by_a_literal() -> None:
    assert "NOT (ts < 1767225600000001)" in serving_sql(VIEWS["sessions"], BUILT, VIEWS)
    assert "ts < 17672" not in serving_sql(VIEWS["sessions"], UNBUILT, VIEWS)


@each_view
def test_only_trailing_windows_depend_on_the_time_of_the_query_and_no_pin_does(view: View) -> None:
    def asks(sql: str) -> bool:
        return any(word in sql.lower() for word in ("current_timestamp", "current_date", "now()", "rand("))

    is_trailing = isinstance(view, AggregateView) and isinstance(view.declaration.window, Trailing)
    assert asks(serving_sql(view, BUILT, VIEWS)) is is_trailing
    assert not asks(serving_sql(view, BUILT, VIEWS, head=20, now=datetime(2026, 1, 5, tzinfo=UTC)))


def test_a_lookup_reads_the_newest_version_that_is_published(tmp_path: Path) -> None:
    lookups = '{"name": Lookup(view="names", key="card", column="name")}'
    views = load(
        tmp_path, names=NAMES, names_v2=NAMES.replace("owner", "version=2, owner"), payments=aggregate(lookups=lookups)
    )
    sources = {name: Source(1, None, 0, None) for name in ("names", "payments")}
    assert "batch.names" in tables_of(serving_sql(views["payments"], sources, views))
    sources["names_v2"] = Source(1, None, 0, None)
    assert "batch.names_v2" in tables_of(serving_sql(views["payments"], sources, views))
