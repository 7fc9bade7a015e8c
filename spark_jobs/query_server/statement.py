"""Read a statement as Spark's SQL, refuse all but one question, and say it in DuckDB's.

text -> sqlglot's tree -> checked node by node -> Question. What is not known to be harmless is refused by name: this is
what makes the door read-only, beside the engine's own locks (`engine`).
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_jobs.orchestration.interface import PIN
from spark_jobs.query_server.functions import unlike
from spark_jobs.query_server.meaning import as_in_spark
from spark_jobs.query_server.refusal import Refusal

SPARK = "databricks"
"""sqlglot's name for Spark's SQL where a cast that fails is an error, as in Spark 4."""
DUCKDB = "duckdb"
SCHEMAS = ("serving", "marts", "ops")
PINS = re.compile(f"pin_{PIN.pattern}")
MOMENT = "as_of"
"""The schema of the views as of a moment that the question names; no statement can."""
ELSEWHERE = "Spark may take it: `tidemark sql --engine spark`"
PLACEHOLDER = TokenType.PLACEHOLDER
LATERAL = (exp.Explode, exp.Subquery, exp.Unnest)
NEVER = (exp.Into, exp.Parameter, exp.QueryTransform, exp.SessionParameter, exp.Hint)
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it does not know is refused here


@dataclass(frozen=True)
class Question:
    """One SELECT in DuckDB's SQL, and the tables that it reads, each once. parameters: `$p1` and so on, of each `?`."""

    sql: str
    tables: tuple[tuple[str, str], ...]
    parameters: tuple[str, ...] = ()


@lru_cache(maxsize=500)
def question(text: str, schema: str) -> Question:
    """The question that a statement asks; names without a schema are of `schema`. Refusal.

    Dashboards ask the same again and again.
    """
    text, parameters = _numbered(text)
    tree = _only(text)
    for node in tree.walk():
        _refuse_foreign(node)
        if isinstance(node, exp.Placeholder) and node.name not in parameters:
            raise Refusal("refused", f"the parameter {_shown(node)} is refused: this door takes ? and values in order")
    tables = dict.fromkeys(_named(tree, schema))
    _give_headings(tree)
    as_in_spark(tree)
    try:
        sql = tree.sql(DUCKDB, unsupported_level=sqlglot.ErrorLevel.RAISE)
        return Question(sql, tuple(tables), parameters)
    except (sqlglot.errors.UnsupportedError, IndexError, RecursionError) as error:
        raise Refusal("refused", f"this door cannot say it in its engine's SQL: {error}; {ELSEWHERE}") from error


def schema_of(name: str) -> str:
    """The schema, where questions may name it. Refusal."""
    if name in SCHEMAS or PINS.fullmatch(name):
        return name
    raise Refusal("refused", f"the schema {name} is not behind this door: {', '.join(SCHEMAS)} and pins are")


def _numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a name for each `?`, and the names; a tree does not tell which of them comes first."""
    if "?" not in text:
        return text, ()
    try:
        places = [token.start for token in sqlglot.tokenize(text, read=SPARK) if token.token_type == PLACEHOLDER]
    except sqlglot.errors.SqlglotError as error:
        raise Refusal("refused", f"not understood as Spark's SQL: {str(error).splitlines()[0]}") from error
    names = tuple(f"p{number}" for number in range(1, len(places) + 1))
    for place, name in reversed([*zip(places, names, strict=True)]):
        text = f"{text[:place]}:{name}{text[place + 1 :]}"
    return text, names


def _only(text: str) -> exp.Query:
    try:
        trees = [tree for tree in sqlglot.parse(text, read=SPARK) if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        said = str(error).splitlines()[0] if str(error) else "it is nested too deeply"
        raise Refusal("refused", f"not understood as Spark's SQL: {said}") from error
    if len(trees) != 1:
        raise Refusal("refused", f"{len(trees)} statements: this door takes one at a time")
    if not isinstance(trees[0], exp.Query) or isinstance(trees[0], exp.Table):
        raise Refusal("refused", f"{_kind(trees[0])} is refused: this door reads, by a SELECT")
    return trees[0]


def _kind(tree: exp.Expression) -> str:
    return str(tree.this if isinstance(tree, exp.Command) else tree.key).upper()


def _refuse_foreign(node: exp.Expression) -> None:
    """Refuse a node that is no part of a question, or that Spark and this engine take otherwise."""
    if isinstance(node, NEVER) or (isinstance(node, exp.DDL | exp.DML) and not isinstance(node, exp.Query)):
        raise Refusal("refused", f"{_shown(node)} is refused: this door takes a plain SELECT")
    if isinstance(node, exp.Lateral) and node.args.get("outer"):
        raise Refusal("refused", f"LATERAL VIEW OUTER is refused: rows without items would be lost; {ELSEWHERE}")
    if isinstance(node, exp.Lateral) and not isinstance(node.this, LATERAL):
        raise Refusal("refused", f"the table function {_shown(node.this)} is refused; {ELSEWHERE}")
    if isinstance(node, exp.Table):
        _refuse_table(node)
    elif not isinstance(node.parent, exp.Table) and (what := unlike(node)):
        raise Refusal("refused", f"{what} is not among those that Spark and this door take alike; {ELSEWHERE}")


def _refuse_table(table: exp.Table) -> None:
    if not isinstance(table.this, exp.Identifier):
        raise Refusal("refused", f"the table function {_shown(table.this)} is refused; {ELSEWHERE}")
    if table.catalog:
        raise Refusal("refused", f"the catalog {table.catalog} is not behind this door")
    if table.args.get("version") or table.args.get("when"):
        raise Refusal("refused", f"{_shown(table)}: no table is read at a version; ask `as_of` a time, or a pin")
    if table.db:
        schema_of(table.db.lower())


def _named(tree: exp.Query, schema: str) -> list[tuple[str, str]]:
    """Schema and name of each table that is read. What a WITH names gets a name of ours.

    So no name is left that the engine could find among its own relations, whatever it takes the scope of a WITH for.
    """
    tables = [(table, _around(table)) for table in tree.find_all(exp.Table)]
    read = [_qualified(table, schema) for table, around in tables if around is None]
    for number, cte in enumerate(tree.find_all(exp.CTE)):
        name = exp.to_identifier(f"with {number}", quoted=True)
        cte.args["alias"].set("this", name)
        for table in (table for table, around in tables if around is cte):
            _call_it(table, table.this)
            table.set("this", name.copy())
    return read


def _give_headings(tree: exp.Query) -> None:
    """A column without a name is called what the statement says; the engine would call it what it is told."""
    while not isinstance(tree, exp.Select):
        tree = tree.this
    for column in tree.expressions:
        if not (column.is_star or isinstance(column, exp.Column | exp.Alias | exp.Aliases)):
            heading = column.sql("spark", normalize_functions="lower")
            column.replace(exp.alias_(column.copy(), heading, quoted=True))


def _around(table: exp.Table) -> exp.CTE | None:
    """The WITH around it that gives it its rows."""
    named = (cte for cte in _named_around(table) if cte.alias.lower() == table.name.lower())
    return None if table.db else next(named, None)


def _named_around(node: exp.Expression) -> Iterator[exp.CTE]:
    """Those that can be named there: in a WITH those before, and itself in the second half of a recursion."""
    path = [node]
    while (around := path[-1].parent) is not None:
        if isinstance(around, exp.With):
            cte = path[-1]
            yield from around.expressions[: around.expressions.index(cte)]
            if around.recursive and isinstance(cte.this, exp.Union) and any(one is cte.this.expression for one in path):
                yield cte
            around = around.parent
        elif isinstance(around, exp.Query):
            yield from around.ctes
        path.append(around)


def _qualified(table: exp.Table, schema: str) -> tuple[str, str]:
    """Schema and name, in small letters; the statement names both from now on."""
    name = table.name.lower()
    if not table.db:
        _call_it(table, exp.to_identifier(name, quoted=True))
    table.set("db", exp.to_identifier(table.db.lower() or schema, quoted=True))
    table.set("this", exp.to_identifier(name, quoted=True))
    return table.db, name


def _call_it(table: exp.Table, name: exp.Identifier) -> None:
    """Columns go on being found by the name that the statement knows it by."""
    if not table.alias:
        alias = table.args.get("alias") or exp.TableAlias()
        alias.set("this", name.copy())
        table.set("alias", alias)


def _shown(node: exp.Expression) -> str:
    return str(node.sql("spark"))[:80]
