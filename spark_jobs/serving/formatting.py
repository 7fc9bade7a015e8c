"""Rows for people and programs: a table, CSV or JSON.

Answer -> text. Instants are ISO 8601 in UTC, decimals keep all their digits, control characters are spelled out.
"""

import csv
import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from typing import Any, Literal

Format = Literal["table", "csv", "json"]


@dataclass(frozen=True)
class Answer:
    """Columns with the names of their types (BIGINT, or Thrift's BIGINT_TYPE), and the rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def text(answer: Answer, form: Format, width: int | None = None) -> str:
    """The answer as text that ends with a newline; `width` limits a table (None: as wide as it needs)."""
    match form:
        case "table":
            return _table(answer, width)
        case "csv":
            return _csv(answer)
        case "json":
            return _json(answer)


def repeated(names: Sequence[str]) -> str:
    """In words, that more than one column has a name, as an object has one place for each; empty where none has."""
    twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
    return f"more than one column is called {twice}: give each a name of its own by AS, or ask for CSV" if twice else ""


def _table(answer: Answer, width: int | None) -> str:
    if not answer.columns:
        return "done\n"
    from rich.console import Console  # to be loaded by those alone who want a table
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", row_styles=["", "dim"] if len(answer.rows) > 9 else None)
    for name, kind in zip(answer.columns, answer.types, strict=True):
        table.add_column(Text(printable(name)), justify="right" if _is_number(kind) else "left", overflow="fold")
    for row in answer.rows:
        table.add_row(*(Text("NULL", "dim") if v is None else Text(printable(plain(v))) for v in row))
    out = StringIO()
    console = Console(file=out, width=width or 100_000, force_terminal=width is not None)
    console.print(table)
    count = len(answer.rows)
    console.print(f"{count:,} row{'' if count == 1 else 's'}", style="dim", highlight=False)
    return out.getvalue()


def _is_number(kind: str) -> bool:
    return kind.removesuffix("_TYPE").partition("(")[0] in (
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
    )


def printable(value: str) -> str:
    """Control and direction characters (newline, ANSI escape) spelled out: a value cannot write on the terminal."""
    if value.isprintable():
        return value
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        c if unicodedata.category(c) not in bad else c.encode("unicode_escape", "surrogatepass").decode() for c in value
    )


def plain(value: Any) -> str:
    """One value as text: ISO 8601 instants in UTC, exact decimals, bytes in hexadecimal."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return moment.replace(tzinfo=None).isoformat() + "Z"
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
    return str(value)


def _csv(answer: Answer) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([None if value is None else plain(value) for value in row] for row in answer.rows)
    return out.getvalue() if answer.columns else ""


def _json(answer: Answer) -> str:
    """An array of objects, one row a line; decimals are written with all their digits."""
    rows = (
        "{" + ", ".join(f"{json.dumps(n)}: {_literal(v)}" for n, v in zip(answer.columns, row, strict=True)) + "}"
        for row in answer.rows
    )
    return "[" + ",\n ".join(rows) + "]\n"


def _literal(value: Any) -> str:
    if isinstance(value, Decimal):
        return plain(value)
    is_json = value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return json.dumps(value if is_json else plain(value), ensure_ascii=False)
