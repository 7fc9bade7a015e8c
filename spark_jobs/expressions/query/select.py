"""One SELECT: rows -> WHERE -> GROUP BY -> HAVING -> windows -> columns, each expression typed where it stands.

sqlglot's Select + the relations it may read -> typed Select and the Relation that it gives, or Refused
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar import RULES, Scope
from spark_jobs.expressions.grammar.scope import Rule, refuse_unread
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.query import calls
from spark_jobs.expressions.query.refusals import CLAUSES, HINTS, blamed
from spark_jobs.expressions.query.typed import AGGREGATES, KEY, OWN, Call, Relation, Select
from spark_jobs.expressions.source import NAME
from spark_jobs.expressions.tree import Node, column_of
from spark_jobs.expressions.typing_rules import require

_READS = "expressions from_ where group having windows"


def select(tree: exp.Expression, known: Mapping[str, Relation], names: Sequence[str]) -> tuple[Select, Relation]:
    """The typed SELECT, and what it gives; `names` of its columns where a branch before it has named them."""
    with blamed(tree):
        _refuse_clauses(tree)
        source = _source(tree, known)
    base = Scope(known[source].columns, RULES, HINTS)
    where = _condition(base, tree.args.get("where"))
    group, scope, aggregates = _grouped(base, tree)
    having = _condition(scope, tree.args.get("having"))
    unique = known[source].unique if group is None else frozenset(scope.columns)
    scope, windows = _windowed(scope, tree, unique)
    items = _items(scope, tree, names, is_grouped=group is not None)
    kept = {name for name, node in items.items() if column_of(node) == name}
    kinds = {name: cast(Kind, node.kind) for name, node in items.items()}
    relation = Relation(kinds, unique if unique is not None and unique <= kept else None)
    return Select(source, where, group, aggregates, having, windows, items), relation


def _refuse_clauses(tree: exp.Expression) -> None:
    if not isinstance(tree, exp.Select):
        raise Refused("no plain SELECT", "one SELECT, or several joined by UNION ALL, without brackets around them")
    if extra := [name for name, value in tree.args.items() if value and name not in _READS.split()]:
        raise Refused(f"the clause {extra[0].strip('_').upper()}", CLAUSES.get(extra[0], "leave it out"))


def _source(tree: exp.Expression, known: Mapping[str, Relation]) -> str:
    """The name of the one relation that FROM reads."""
    table = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(table, exp.Table) or table.args.get("db") or table.name not in known:
        read = f"reads {table.sql('spark')}" if table else "reads nothing"
        raise Refused(f"it {read}", f"FROM reads {' or '.join(known)}; other parts of WITH come before they are read")
    if table.args.get("alias"):
        raise Refused(f"the alias {table.alias}", "there is one relation, and its columns need no prefix")
    refuse_unread(table, "this")
    return str(table.name)


def _condition(scope: Scope, clause: exp.Expression | None) -> Node | None:
    if clause is None:
        return None
    with blamed(clause.this):
        return require(scope.typed(clause.this), "BOOLEAN", "a condition")


def _grouped(base: Scope, tree: exp.Expression) -> tuple[tuple[str, ...] | None, Scope, dict[str, Call]]:
    """The columns of GROUP BY, what can be said of a group, and the aggregates as they come to be said."""
    clause, aggregates = tree.args.get("group"), dict[str, Call]()
    if clause is None:
        return None, base, aggregates
    with blamed(clause):
        refuse_unread(clause, "expressions")
        group = tuple(_group_column(base, column) for column in clause.expressions)
        if KEY not in group:
            raise Refused("groups of several keys", f"GROUP BY {KEY}, ..: a key's results follow from its rows alone")

    def column(scope: Scope, tree: exp.Expression) -> Node:
        if tree.name in base.columns and tree.name not in scope.columns:
            raise Refused(f"column {tree.name} is not grouped", "GROUP BY it, or write max(..) or min(..)")
        return scope.column(tree)

    def aggregate(_: Scope, tree: exp.Expression) -> Node:
        return _lifted(aggregates, "_group", calls.call(base, tree))

    rules: dict[type[exp.Expression], tuple[str, Rule]] = dict.fromkeys(AGGREGATES, ("this", aggregate))
    rules[exp.Column] = ("this", column)
    columns = {name: base.columns[name] for name in group}
    return group, replace(base, columns=columns, rules={**base.rules, **rules}), aggregates


def _group_column(base: Scope, tree: exp.Expression) -> str:
    node = base.typed(tree)
    name = column_of(node)
    if name is None or node.kind in ("DOUBLE", "ARRAY<STRING>"):
        raise Refused(f"GROUP BY `{tree.sql('spark')}`", "columns that are no DOUBLE; compute others in a part of WITH")
    return name


def _windowed(scope: Scope, tree: exp.Expression, unique: frozenset[str] | None) -> tuple[Scope, dict[str, Call]]:
    """What columns may say, and the functions over windows as they come to be said."""
    windows: dict[str, Call] = {}
    named = {definition.name: definition for definition in tree.args.get("windows") or []}

    def window(_: Scope, tree: exp.Expression) -> Node:
        call = calls.call(scope, tree.this)
        over = calls.window(scope, calls.definition(tree, named), call.function, unique)
        return _lifted(windows, "_window", replace(call, window=over))

    return replace(scope, rules={**scope.rules, exp.Window: (calls.WINDOW, window)}), windows


def _lifted(calls: dict[str, Call], prefix: str, call: Call) -> Node:
    """The call's value as a column."""
    name = f"{prefix}_{len(calls)}"
    calls[name] = call
    return Node("column", call.kind, (), name)


def _items(scope: Scope, tree: exp.Expression, names: Sequence[str], is_grouped: bool) -> dict[str, Node]:
    columns = [(one, *column) for one in tree.expressions for column in _columns(scope, one, is_grouped)]
    if names and len(columns) != len(names):
        raise Refused(f"branches of UNION ALL of {len(names)} and {len(columns)} columns", "name the same in each")
    items: dict[str, Node] = {}
    for place, (one, name, node) in enumerate(columns):
        with blamed(one):
            name = names[place] if names else name
            _check_name(name, node)
            if name in items:
                raise Refused(f"two columns are named {name}", "name each once; `*` has all columns of its source")
            items[name] = node
    return items


def _columns(scope: Scope, tree: exp.Expression, is_grouped: bool) -> list[tuple[str, Node]]:
    with blamed(tree):
        if isinstance(tree, exp.Star) and not is_grouped and not tree.args.get("except_"):
            refuse_unread(tree, "")
            return [(name, Node("column", kind, (), name)) for name, kind in scope.columns.items()]
        name = tree.alias if isinstance(tree, exp.Alias) else tree.name if isinstance(tree, exp.Column) else ""
        return [(name, scope.typed(tree.this if isinstance(tree, exp.Alias) else tree))]


def _check_name(name: str, node: Node) -> None:
    if not NAME.fullmatch(name):
        raise Refused(f"a column named {name!r}", "write AS name: lower case letters, digits and single underscores")
    if name in OWN and column_of(node) != name:
        raise Refused(f"another column takes the name {name}", f"{', '.join(OWN)} are the row's own; choose a new name")
    if node.kind == "NULL":
        raise Refused("it is always NULL", "give it a kind: CAST(NULL AS BIGINT)")
