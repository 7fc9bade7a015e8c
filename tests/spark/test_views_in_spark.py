"""The view cases once more in Spark: stored as the batch layer does, speed partials from DuckDB, served by render.

What DuckDB says in tests/views must be what Spark says here: merged, and from the batch layer alone.
"""

import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.batch.merge import columns
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import sequence_replay
from spark_jobs.engine.chained_view import Served, stored_of
from spark_jobs.engine.partials import compute, to_build
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.render import serving_sql
from spark_jobs.storage import duckdb_reader
from spark_jobs.testing import cases
from tests.platform import OF_EACH_KIND

pytestmark = pytest.mark.spark
CASES = [
    pytest.param(case, id=f"{case.view}-{case.name}", marks=[] if case.view in OF_EACH_KIND else pytest.mark.slow)
    for case in cases.cases(Path(__file__).parent.parent / "views")
]


@pytest.mark.parametrize("case", CASES)
def test_spark_serves_the_expected_answer(interpreted: SparkSession, case: cases.Case) -> None:
    views = project_views()
    facts = cases.facts(case.batches)
    for cut in (1, len(case.batches)):
        built, new = cases.until(facts, cut)
        assert served(interpreted, views, views.served[case.view], built, new, case.now) == case.expected, f"cut {cut}"


def served(
    spark: SparkSession,
    views: Views,
    view: Served,
    built: cases.Facts,
    new: cases.Facts,
    now: datetime | None,
) -> cases.Answer:
    needed = [stored_of(view), *looked_up(views, stored_of(view))]
    for one in needed:
        build(spark, one, built)
    passed = compute({**new, **cases.side_inputs(stored_of(view), built, new)}, needed)
    rows = [structs(column, table) for column, table in passed.partials.items()]
    spark.createDataFrame(pa.concat_tables(rows, promote_options="default")).createOrReplaceTempView("speed_partials")
    sql = serving_sql(view, dict.fromkeys([one.id for one in needed], Source(0, 0, 0, None)), views, now=now)
    sql = re.sub(r"batch\.`(\w+)` VERSION AS OF 0", r"built_\1", sql).replace("speed.partials", "speed_partials")
    return cases.in_order(spark.sql(sql).toArrow().to_pylist())


def looked_up(views: Views, view: View) -> list[View]:
    return [views.by_name[name] for name in view.looked_up]


def structs(column: str, table: pa.Table) -> pa.Table:
    fields = list(table.schema)[1:]
    struct = pa.StructArray.from_arrays([table[f.name].combine_chunks() for f in fields], fields=fields)
    return pa.table({"view": pa.array([column] * table.num_rows, pa.string()), "lsn": table["lsn"], column: struct})


def build(spark: SparkSession, view: View, built: cases.Facts) -> None:
    """Temporary views built_<table>, as a build makes them."""
    made = {name: schema.empty_table() for name, schema in columns(view).items()}
    with duckdb_reader.connect({}) as con:
        for _, rows in to_build(con, {**built, **cases.side_inputs(view, {}, built)}, [view]):
            if isinstance(view, SequenceView):
                con.register("fresh", rows)
                replayed = sequence_replay.replayed(con, view, "fresh")
                made = {name: con.sql(sql).to_arrow_table() for name, sql in zip(made, replayed, strict=True)}
            else:
                made = dict.fromkeys(made, rows)
    for name, rows in made.items():
        spark.createDataFrame(rows).createOrReplaceTempView(f"built_{name.removeprefix('batch.')}")
