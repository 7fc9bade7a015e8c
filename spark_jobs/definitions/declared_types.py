"""Whether a declaration holds what its fields say: a tuple in the place of a text is refused by its name.

Aggregate | Sequence (and the rows, measures and windows in it) -> nothing, or ViewError.
"""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from spark_jobs.definitions.clauses import ViewError

HINT = 'docs/views.md lists the arguments; an expression is one text, such as "store_id"'


def check_types(declared: object) -> None:
    """Look at every field, and into what it holds. Raises ViewError."""
    hints = get_type_hints(type(declared))
    for field in fields(declared):  # type: ignore[arg-type]
        _check(getattr(declared, field.name), hints[field.name], f"{type(declared).__name__}'s {field.name}")


def _check(value: object, hint: Any, what: str) -> None:
    if not _is(value, hint):
        raise ViewError(f"{what} is {_shown(value)}, not {_named(hint)}", HINT)
    if isinstance(value, Mapping):
        _, of_values = get_args(hint) or (Any, Any)
        for name, each in value.items():
            _check(each, of_values, f"{what} {name}")
    elif is_dataclass(value):
        check_types(value)


def _is(value: object, hint: Any) -> bool:
    """Whether it is of the type; what a mapping holds is looked at one by one."""
    origin, of = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_is(value, each) for each in of)
    if origin is Literal:
        return value in of
    if origin is tuple:
        return isinstance(value, tuple) and all(_is(each, of[0]) for each in value)
    return isinstance(value, origin or hint) and (hint is bool or not isinstance(value, bool) or hint is object)


def _shown(value: object) -> str:
    return f"the {type(value).__name__} {value!r:.60}"


def _named(hint: Any) -> str:
    """The type as an author calls it."""
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_named(each) for each in of if each is not types.NoneType)
    if origin is Literal:
        return f"one of {', '.join(map(str, of))}"
    if origin is tuple:
        return f"a tuple of {_named(of[0])}"
    names = {str: "a text", int: "a number", bool: "True or False", Mapping: "a dictionary"}
    return names.get(origin or hint, f"a {getattr(origin or hint, '__name__', hint)}")
