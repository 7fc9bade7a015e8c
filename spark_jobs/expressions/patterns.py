"""Patterns that mean the same in Java's, RE2's and the engines' LIKE: a small subset, rewritten to code points.

text of the pattern -> checked, canonical pattern (or Refused)
"""

import re

from spark_jobs.expressions.error import Refused

_LAST = 0x10FFFF
_ESCAPES = {
    "d": [(0x30, 0x39)],
    "D": [(0, 0x2F), (0x3A, _LAST)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "W": [(0, 0x2F), (0x3A, 0x40), (0x5B, 0x5E), (0x60, 0x60), (0x7B, _LAST)],
    "s": [(0x09, 0x0D), (0x20, 0x20)],
    "S": [(0, 0x08), (0x0E, 0x1F), (0x21, _LAST)],
    "t": [(0x09, 0x09)],
    "n": [(0x0A, 0x0A)],
    "r": [(0x0D, 0x0D)],
}
_SPECIAL, _SPECIAL_IN_CLASS = set(".^$|?*+()[]{}\\"), set("[]^&-~")
_HINT = "write one character, or one class such as '[^a-z0-9]+', optionally with a + behind it"
Ranges = list[tuple[int, int]]


def split_pattern(text: str) -> str:
    """One character or one class of characters, optionally repeated by `+`, with every character as `\\x{..}`."""
    body, plus = (text[:-1], "+") if len(text) > 1 and text.endswith("+") and text != "\\+" else (text, "")
    if body.startswith("[") and body.endswith("]") and len(body) > 2:
        negation = "^" if body[1] == "^" else ""
        return f"[{negation}{_written(_class(body[1:-1].removeprefix('^')))}]{plus}"
    ranges, rest = _atom(body)
    if rest:
        raise Refused(f"split pattern {text!r} is more than one character or class", _HINT)
    return f"[{_written(ranges)}]{plus}"


def _class(inside: str) -> Ranges:
    ranges: Ranges = []
    while inside:
        atom, inside = _atom(inside, in_class=True)
        if inside.startswith("-") and len(inside) > 1:
            end, inside = _atom(inside[1:], in_class=True)
            if len(atom) != 1 or len(end) != 1 or atom[0][0] > end[0][0]:
                raise Refused("a range in the split pattern has no two characters in order", _HINT)
            atom = [(atom[0][0], end[0][1])]
        ranges += atom
    if not ranges:
        raise Refused("an empty class in the split pattern", _HINT)
    return ranges


def _atom(text: str, in_class: bool = False) -> tuple[Ranges, str]:
    """The first character or escape of `text` as ranges of code points, and the rest."""
    first, rest = text[:1], text[1:]
    if first == "\\":
        first, rest = rest[:1], rest[1:]
        if first in _ESCAPES:
            return _ESCAPES[first], rest
        if not first or first.isalnum():
            raise Refused(f"the escape '\\{first}' in the split pattern", _HINT)
    elif not first or first in (_SPECIAL_IN_CLASS if in_class else _SPECIAL):
        raise Refused(f"{first!r} in the split pattern means different things to regular expressions", _HINT)
    return [(ord(first), ord(first))], rest


def _written(ranges: Ranges) -> str:
    return "".join(f"\\x{{{low:x}}}" + (f"-\\x{{{high:x}}}" if high > low else "") for low, high in ranges)


def check_like(pattern: str) -> str:
    """A LIKE pattern in which the backslash escapes only %, _ and itself; anything else Spark refuses at run time."""
    if re.search(r"\\(?![%_\\])", re.sub(r"\\\\", "", pattern)):
        raise Refused(
            f"LIKE pattern {pattern!r} escapes something else than %, _ or the backslash", "write \\\\ for it"
        )
    return pattern
