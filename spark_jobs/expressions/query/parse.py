"""`parse_query`: the text of a `resolve`, checked and rendered for both engines.

text + columns of {rows} -> parts of WITH, branches of UNION ALL -> typed -> SQL for Spark and DuckDB -> Query
Shapes, functions and orders that a query may have, and why, are in `docs/expressions.md`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.expressions.dialect import Dialect
from spark_jobs.expressions.error import Refused, reported
from spark_jobs.expressions.expression import empty_relation, refuse_unbound
from spark_jobs.expressions.grammar.scope import refuse_unread
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.query.refusals import blamed, shortened
from spark_jobs.expressions.query.render import RELATION, render
from spark_jobs.expressions.query.select import select
from spark_jobs.expressions.query.typed import ROWS, Relation, Union
from spark_jobs.expressions.source import NAME, tree_of

LONGEST_QUERY = 20_000


@dataclass(frozen=True)
class Query:
    """A checked query and its columns; RELATION in `spark` and `duckdb` stands for the rows that it reads."""

    text: str
    columns: Mapping[str, Kind]
    spark: str
    duckdb: str


def parse_query(text: str, rows: Relation, placeholders: Mapping[str, int], where: str) -> Query:
    """Check `text` over `rows`; ExpressionError says what is refused `where`, and what to write instead."""
    with reported(shortened(text), where):
        tree = tree_of(_filled(text, placeholders), LONGEST_QUERY)
        parts, known = _parts(tree, rows)
        branches, result = _union(tree, known)
        spark, duckdb = (render(parts, branches, dialect) for dialect in (Dialect.SPARK, Dialect.DUCKDB))
        refuse_unbound(duckdb.replace(RELATION, empty_relation(rows.columns)), result.columns)
        return Query(text, result.columns, spark, duckdb)


def _filled(text: str, placeholders: Mapping[str, int]) -> str:
    """The text with numbers for placeholders, and `{rows}` as a name."""
    values = {"rows": f"`{ROWS}`", **{name: str(value) for name, value in placeholders.items()}}
    if unknown := sorted(set(re.findall(r"\{(.*?)\}", text)) - values.keys()):
        raise Refused(f"there is no {{{unknown[0]}}}", f"placeholders: {', '.join(f'{{{name}}}' for name in values)}")
    return re.sub(r"\{(\w+)\}", lambda placeholder: values[placeholder[1]], text)


def _parts(tree: exp.Expression, rows: Relation) -> tuple[dict[str, Union], dict[str, Relation]]:
    """The parts of WITH, and the relations that the last SELECT may read."""
    parts: dict[str, Union] = {}
    known = {ROWS: rows}
    clause = tree.args.get("with_")
    tree.set("with_", None)
    if clause is None:
        return parts, known
    refuse_unread(clause, "expressions")
    for part in clause.expressions:
        with blamed(part):
            refuse_unread(part, "this alias")
            refuse_unread(part.args["alias"], "this")
            if part.alias in known or not NAME.fullmatch(part.alias):
                raise Refused(f"a part of WITH named {part.alias}", "a new name: lower case, digits, underscores")
            parts[part.alias], known[part.alias] = _union(part.this, known)
    return parts, known


def _union(tree: exp.Expression, known: Mapping[str, Relation]) -> tuple[Union, Relation]:
    """The branches of a UNION ALL, or the one SELECT that there is."""
    first, *others = _branches(tree)
    made, relation = select(first, known, ())
    selects = [made]
    for tree in others:
        branch, other = select(tree, known, tuple(relation.columns))
        selects.append(branch)
        for name, kind in relation.columns.items():
            if other.columns[name] != kind:
                raise Refused(f"branches of UNION ALL give {name} as {kind} and {other.columns[name]}", "CAST one")
        relation = Relation(relation.columns, None)
    return tuple(selects), relation


def _branches(tree: exp.Expression) -> list[exp.Expression]:
    if not isinstance(tree, exp.SetOperation):
        return [tree]
    with blamed(tree):
        if not isinstance(tree, exp.Union) or tree.args.get("distinct"):
            raise Refused("no UNION ALL", "UNION ALL joins branches; WHERE leaves rows out, GROUP BY makes them one")
        if tree.args.get("order") or tree.args.get("limit"):
            raise Refused("results have no order", "order inside windows")
        refuse_unread(tree, "this expression")
    return [*_branches(tree.this), *_branches(tree.expression)]
