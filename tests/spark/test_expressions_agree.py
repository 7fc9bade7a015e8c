"""The law of expressions: random typed text over random rows means the same in Spark and in DuckDB.

Both engines give the same values, bit by bit, and fail on the same rows; and where there is a value, it is the one
that Spark gives for the text itself.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.expressions.expression import Expression, parse
from spark_jobs.expressions.grammar import RULES, Scope
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations import CASTS, OPERATIONS, Operation
from spark_jobs.expressions.source import tree_of
from spark_jobs.expressions.tree import Node
from tests.depth import examples
from tests.laws.expression_grammar import KINDS, edge_texts, texts
from tests.laws.expression_values import COLUMNS, edge_table, random_tables

pytestmark = pytest.mark.spark
ROWS, TEXTS = 60, 40
# Where these mean something else than Spark's function of that name, docs/expressions.md says so.
OWN_MEANING = ("lower", "upper", "window_start")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    spark.sparkContext.setLogLevel("OFF")  # raw texts may raise, and say so at length
    yield spark
    spark.sparkContext.setLogLevel("WARN")
    spark.conf.set("spark.sql.ansi.enabled", "true")


@st.composite
def batches(draw: st.DrawFn) -> list[str]:
    """Texts of expressions, one query's worth: a query costs more than what it computes."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=TEXTS, max_size=TEXTS))
    return [draw(texts(kind, draw(st.integers(1, 3)))) for kind in kinds]


@settings(max_examples=examples(4), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(batch=batches(), rows=random_tables(ROWS))
def test_both_engines_give_the_same_values_and_fail_on_the_same_rows(
    session: SparkSession, tmp_path_factory: pytest.TempPathFactory, batch: list[str], rows: pa.Table
) -> None:
    assert disagreements(session, tmp_path_factory.mktemp("rows"), batch, rows) == []


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_operation_agrees_on_every_pair_of_edge_values(session: SparkSession, tmp_path: Path, ansi: str) -> None:
    session.conf.set("spark.sql.ansi.enabled", ansi)
    every, rows = edge_texts(), edge_table()
    chunks = [every[n : n + TEXTS] for n in range(0, len(every), TEXTS)]
    assert [line for chunk in chunks for line in disagreements(session, tmp_path, chunk, rows)] == []


REORDERED = ["j * (j * 0L)", "-3L * ((j * 0L) * j)", "(j + 5L) + -10L", "i + (j + 1L) + 2L", "(i - 1L) + (2L - j)"]


def test_neither_engine_computes_in_another_order_than_the_text(session: SparkSession, tmp_path: Path) -> None:
    """Another order overflows on other rows: `j * 0 * j` does not where `j * j * 0` does."""
    assert disagreements(session, tmp_path, REORDERED, edge_table()) == []


def test_the_edge_cases_contain_the_whole_positive_list() -> None:
    scope = Scope(COLUMNS, RULES)
    used = {operation for text in edge_texts() for operation in operations(scope.typed(tree_of(text)))}
    listed = {o for overloads in OPERATIONS.values() for o in overloads} | set(CASTS.values())
    assert listed - used == set()


def operations(node: Node) -> Iterator[Operation]:
    """All operations of a tree."""
    if isinstance(node.op, Operation):
        yield node.op
    for arg in node.args:
        yield from operations(arg)


def disagreements(session: SparkSession, folder: Path, batch: list[str], rows: pa.Table) -> list[str]:
    """One line for each expression and column of answers that differ."""
    show(session, rows, folder)
    expressions = [parse(text, COLUMNS, "law") for text in batch]
    spark, duck = answers_of_spark(session, expressions), answers_of_duckdb(rows, expressions)
    lines = [
        compare(e, part, spark[n][part], duck[n][part], rows) for n, e in enumerate(expressions) for part in (0, 1)
    ]
    raw = raw_answers([e for e in expressions if not any(word in e.text for word in OWN_MEANING)], session)
    values = {e.text: spark[n][0] for n, e in enumerate(expressions)}
    lines += [compare(e, 2, values[e.text], answer, rows) for e, answer in raw]
    return [line for line in lines if line]


def show(session: SparkSession, rows: pa.Table, folder: Path) -> None:
    """The rows as the table `rows`, from a file: over local rows Spark's optimiser would evaluate, not its executor."""
    pq.write_table(rows, folder / "rows.parquet")
    session.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("rows")


Answers = list[tuple[list[Any], list[Any]]]


def answers_of_spark(session: SparkSession, expressions: list[Expression]) -> Answers:
    columns = [c for e in expressions for c in (plain(e.spark, e.kind, "unix_micros"), e.spark_fails or "FALSE")]
    return paired(session.sql(numbered(columns)).toArrow())


def answers_of_duckdb(rows: pa.Table, expressions: list[Expression]) -> Answers:
    columns = [c for e in expressions for c in (plain(e.duckdb, e.kind, "epoch_us"), e.duckdb_fails or "FALSE")]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", rows)
        return paired(connection.sql(numbered(columns)).to_arrow_table())


def raw_answers(expressions: list[Expression], session: SparkSession) -> list[tuple[Expression, list[Any]]]:
    """What Spark makes of the text itself, where ours gives a value; without those texts on which Spark raises.

    It may raise: where NULL and a failure meet, its verdict depends on its order of evaluation.
    """
    if not expressions:
        return []
    own = [f"CAST(({e.text}) AS {e.kind})" for e in expressions]
    columns = [
        f"CASE WHEN {e.spark} IS NULL THEN NULL ELSE {plain(raw, e.kind, 'unix_micros')} END"
        for e, raw in zip(expressions, own, strict=True)
    ]
    try:
        found = session.sql(numbered(columns)).toArrow()
    except (PySparkException, Py4JJavaError):
        half = len(expressions) // 2
        return raw_answers(expressions[:half], session) + raw_answers(expressions[half:], session) if half else []
    return [(e, column.to_pylist()) for e, column in zip(expressions, found.columns, strict=True)]


def numbered(columns: list[str]) -> str:
    return f"SELECT {', '.join(f'{column} AS c{n}' for n, column in enumerate(columns))} FROM rows"


def paired(table: pa.Table) -> Answers:
    lists = [column.to_pylist() for column in table.columns]
    return list(zip(lists[::2], lists[1::2], strict=True))


def plain(sql: str, kind: Kind, micros: str) -> str:
    """Instants as microseconds: Python has none at the ends of the range in every zone."""
    return f"{micros}({sql})" if kind == "TIMESTAMP" else sql


def bits(value: Any) -> Any:
    """Doubles by their bits, every NaN alike."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value).hex()
    return value


def compare(e: Expression, part: int, left: list[Any], right: list[Any], rows: pa.Table) -> str:
    """The first row on which two columns of answers differ; in part 2 only where the left one has a value."""
    for row, (a, b) in enumerate(zip(left, right, strict=True)):
        if bits(a) != bits(b) and not (part == 2 and a is None):
            of = {name: rows[name][row] for name in sorted(e.columns)}
            what = ("values in Spark and DuckDB", "failures in Spark and DuckDB", "ours and Spark's own value")[part]
            return f"{e.text}: {what}: {a!r}, {b!r} of {of}"
    return ""
