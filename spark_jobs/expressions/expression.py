"""`parse`: one expression's text, checked and rendered for both engines.

text + columns -> typed tree -> SQL for Spark, SQL for DuckDB -> bound in DuckDB -> Expression
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import duckdb

from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.expressions.error import Refused, reported
from spark_jobs.expressions.grammar import RULES, Scope
from spark_jobs.expressions.kinds import DUCKDB_TYPES, Kind
from spark_jobs.expressions.render import render
from spark_jobs.expressions.source import tree_of
from spark_jobs.expressions.tree import Node, column_of

_FAULT = "this is a fault of Tidemark: report it"


@dataclass(frozen=True)
class Expression:
    """One checked expression. `spark` and `duckdb` are SQL that never raises and gives NULL for a failing row.

    `spark_fails` and `duckdb_fails` are BOOLEAN SQL, never NULL: this row's evaluation fails. None: no row can fail.
    """

    text: str
    kind: Kind
    columns: frozenset[str]
    spark: str
    duckdb: str
    spark_fails: str | None
    duckdb_fails: str | None


def parse(text: str, columns: Mapping[str, Kind], where: str) -> Expression:
    """Check `text` over `columns`; ExpressionError says what is refused `where`, and what to write instead."""
    with reported(text, where):
        return _checked(text, tuple(columns.items()))


@lru_cache(maxsize=4096)
def _checked(text: str, columns: tuple[tuple[str, Kind], ...]) -> Expression:
    scope = Scope(dict(columns), RULES)
    node = scope.typed(tree_of(text))
    if node.kind == "NULL":
        raise Refused("it is always NULL", "give it a kind: CAST(NULL AS BIGINT)")
    spark, duck = render(node, Dialect.SPARK), render(node, Dialect.DUCKDB)
    used = frozenset(_columns_in(node))
    selected = f"{duck.total()} AS value, {duck.failure() or 'FALSE'} AS fails"
    source = empty_relation({name: scope.columns[name] for name in used})
    refuse_unbound(f"SELECT {selected} FROM {source}", {"value": node.kind, "fails": "BOOLEAN"})
    return Expression(text, node.kind, used, spark.total(), duck.total(), spark.failure(), duck.failure())


def _columns_in(node: Node) -> set[str]:
    own = column_of(node)
    return ({own} if own else set()).union(*(_columns_in(arg) for arg in node.args))


def empty_relation(columns: Mapping[str, Kind]) -> str:
    """DuckDB's SQL of a relation with these columns."""
    typed = [f"CAST(NULL AS {DUCKDB_TYPES[k]}) AS {quote(name, Dialect.DUCKDB)}" for name, k in columns.items()]
    return f"(SELECT {', '.join(typed) or 'NULL AS nothing'})"


def refuse_unbound(query: str, kinds: Mapping[str, Kind]) -> None:
    """DuckDB itself must accept the SQL, with exactly these columns: the last word on what was rendered."""
    try:
        with duckdb_session.shared().cursor() as connection:
            bound = connection.execute(f"DESCRIBE {query}").fetchall()
    except duckdb.Error as error:
        raise Refused(f"DuckDB does not bind it: {error}", _FAULT) from error
    types = {str(name): str(kind) for name, kind, *_ in bound}
    if types != {name: DUCKDB_TYPES[kind] for name, kind in kinds.items()}:
        raise Refused(f"DuckDB types it {types}, not {dict(kinds)}", _FAULT)
