"""What must be checked in the text itself, because sqlglot's tree no longer shows it.

text -> tokens -> refused, or sqlglot's tree
"""

import re
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from spark_jobs.expressions.error import Refused

# What an author may name anything: Tidemark's own names have a leading or a double underscore.
NAME = re.compile(r"[a-z](_?[a-z0-9])*")
LONGEST_TEXT = 4000
_SAFE_ESCAPE = re.compile(r"\\(?![\\'\"nt%_])")
# sqlglot drops the length of these types; Spark treats them as STRING with rules of their own.
_LOSSY = {TokenType.CHAR, TokenType.VARCHAR, TokenType.NCHAR, TokenType.NVARCHAR}


def tree_of(text: str, longest: int = LONGEST_TEXT) -> exp.Expression:
    """sqlglot's tree of one expression, or of one query."""
    if len(text) > longest:
        raise Refused(f"it is longer than {longest} characters", "split it up")
    try:
        tokens = sqlglot.tokenize(text, read="spark")
        _check(text, tokens)
        return sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0]
        raise Refused(f"it does not parse: {message}", "see docs/expressions.md") from error


def _check(text: str, tokens: list[Token]) -> None:
    for token in tokens:
        raw = text[token.start : token.end + 1]
        if token.token_type == TokenType.STRING and _SAFE_ESCAPE.search(re.sub(r"\\\\", "", raw)):
            raise Refused(
                f"the escape in {raw}", r"string literals know \\ \' \" \n \t \% \_; double other backslashes"
            )
        if token.token_type in _LOSSY:
            raise Refused(f"type {raw.upper()}", "write STRING")
        if "\x00" in token.text:
            raise Refused("a NUL character in a literal")
    for left, right in pairwise(tokens):
        if left.token_type == right.token_type == TokenType.STRING:
            raise Refused("two string literals side by side", "Spark 4 reads '' as a quote; write \\' or concat()")
    for name, opened, unit in zip(tokens, tokens[1:], tokens[2:], strict=False):
        call = name.text.lower() == "date_trunc" and opened.token_type == TokenType.L_PAREN
        if call and unit.token_type != TokenType.STRING:
            raise Refused("the unit of date_trunc must be a literal", "date_trunc('HOUR', occurred_at)")
