"""The two SQL engines that a view is rendered for, and what they spell differently.

DuckDB makes the partials of both layers, Spark serves them; both merge.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from spark_jobs.expressions.kinds import DUCKDB_TYPES, Kind

if TYPE_CHECKING:
    from spark_jobs.expressions.expression import Expression
    from spark_jobs.expressions.operations import Operation
    from spark_jobs.expressions.query.parse import Query
    from spark_jobs.expressions.query.typed import Function


class Dialect(StrEnum):
    SPARK = "spark"
    DUCKDB = "duckdb"


# One text for both dialects, or one for each.
Sql = str | Mapping[Dialect, str]


def quote(name: str, dialect: Dialect) -> str:
    """A name as an identifier; quoting keeps words such as `end` or `order` usable."""
    mark = "`" if dialect is Dialect.SPARK else '"'
    return mark + name.replace(mark, mark * 2) + mark


def quote_text(text: str, dialect: Dialect) -> str:
    """A string literal. Spark substitutes `${..}` in any SQL text, so the dollar is written as an escape."""
    if dialect is Dialect.DUCKDB:
        return "'" + text.replace("'", "''") + "'"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def listed(names: Iterable[str], dialect: Dialect) -> str:
    return ", ".join(quote(name, dialect) for name in names)


def placed(template: Sql, **parts: str) -> Sql:
    """A template with its `{part}`s put in."""
    if isinstance(template, str):
        return template.format(**parts)
    return {dialect: text.format(**parts) for dialect, text in template.items()}


def filled(template: Sql, dialect: Dialect) -> str:
    """The text of a template, each `[name]` a quoted column."""
    text = template if isinstance(template, str) else template[dialect]
    return re.sub(r"\[(\w+)\]", lambda found: quote(found[1], dialect), text)


def rendered(texts: "Expression | Query | Operation | Function", dialect: Dialect) -> str:
    return texts.spark if dialect is Dialect.SPARK else texts.duckdb


def failing(expression: "Expression", dialect: Dialect) -> str | None:
    """SQL that is true where the expression's evaluation fails; None where it cannot."""
    return expression.spark_fails if dialect is Dialect.SPARK else expression.duckdb_fails


def type_of(kind: Kind, dialect: Dialect) -> str:
    return kind if dialect is Dialect.SPARK else DUCKDB_TYPES[kind]


def null_of(kind: Kind, dialect: Dialect) -> str:
    return f"CAST(NULL AS {type_of(kind, dialect)})"


def micros(instant: str, dialect: Dialect) -> str:
    """Microseconds since 1970 of a TIMESTAMP."""
    return f"unix_micros({instant})" if dialect is Dialect.SPARK else f"epoch_us({instant})"


def instant(micros: str, dialect: Dialect) -> str:
    """The TIMESTAMP (UTC) of microseconds since 1970."""
    return f"timestamp_micros({micros})" if dialect is Dialect.SPARK else f"make_timestamptz({micros})"


def exploded(array: str, dialect: Dialect) -> str:
    return f"explode({array})" if dialect is Dialect.SPARK else f"unnest({array})"


def order_of_events(at: str, dialect: Dialect) -> str:
    """The struct measures.ORDER: `at`, then the source position."""
    if dialect is Dialect.SPARK:
        return f"named_struct('at', {at}, 'topic', topic, 'partition', `partition`, 'offset', `offset`)"
    return f'struct_pack("at" := {at}, topic := topic, "partition" := "partition", "offset" := "offset")'


TIE_OF_EVENTS = """topic || '/' || (10000000000 + "partition") || '/' || (1000000000000000000 + "offset")"""
"""topic/partition/offset as text that sorts like them: a leading 1 pads them (10 and 18 digits). For DuckDB."""
