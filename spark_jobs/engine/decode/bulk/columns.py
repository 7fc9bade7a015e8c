"""Prove the fields of many objects that a reader has read: columns, and masks that say where they keep the schema.

texts -> quotes_of; objects -> leaves -> lists of values by path; a field's list -> column -> Arrow column, mask

A reader does not tell that a key came twice: the last one wins. But the text has two quotes for each key and each
string, so where it has more than the object that was read, something was lost.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts.field_paths import ABSENT, Path
from spark_jobs.contracts.loader import ARROW
from spark_jobs.contracts.row_types import INSTANT, INSTANTS
from spark_jobs.engine.decode.bulk.readers import Shape
from spark_jobs.engine.decode.strict_json import MAX_DEPTH

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Values = list[Any]

_LOST = 1 << 40  # more quotes than any text has
# Quotes of a member, by the type of its value: two for the key; those inside an object or array remain to be counted.
_QUOTES: dict[type, int] = defaultdict(lambda: 2, {type(ABSENT): 0, str: 4, dict: 3, list: 3})
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
# The real moments of the years 1970 to 2261 (row_types.YEARS), with 29 February in leap years alone.
_REAL = (
    "^(?:(?:19[7-9][0-9]|2[01][0-9]{2}|22[0-5][0-9]|226[01])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:19(?:7[26]|8[048]|9[26])|20(?:[02468][048]|[13579][26])|2[12](?:0[48]|[2468][048]|[13579][26]))-02-29)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$"
)


def quotes_of(texts: pa.BinaryArray) -> Counts:
    """How many quotes JSON texts have that no backslash escapes; none may be empty."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    characters = np.frombuffer(data, np.uint8, bounds[-1])
    quotes: Counts = np.add.reduceat(characters == ord('"'), bounds[:-1], dtype=np.int64)
    if (escapes := characters == ord("\\")).any():
        for row in np.flatnonzero(np.logical_or.reduceat(escapes, bounds[:-1])).tolist():
            quotes[row] = _ESCAPE.sub(b"", texts[row].as_py()).count(b'"')
    return quotes


def leaves(objects: Sequence[Any], shape: Shape, quotes: Counts, at: Path = ()) -> Iterator[tuple[Path, Values]]:
    """(path, values) of the members that are no objects; takes the quotes of every member off `quotes`."""
    for number, (name, inner) in enumerate(shape.members.items()):
        values: Values = [*map(attrgetter(f"m{number}"), objects)]
        quotes -= _QUOTES[inner] if isinstance(inner, type) else _quotes(values)
        if isinstance(inner, Shape):
            yield from leaves(_filled(values, inner, quotes), inner, quotes, (*at, name))
        else:
            yield (*at, name), values


def _quotes(values: Values) -> Counts:
    quotes = np.frombuffer(bytes(map(_QUOTES.__getitem__, map(type, values))), np.uint8).astype(np.int64)
    for row in np.flatnonzero(quotes == 3).tolist():
        quotes[row] = 2 + _within(values[row])
    return quotes


def _within(value: Any) -> int:
    """The quotes inside an object or array that the schema does not know, unless that may be too deep."""
    try:
        text = _ESCAPE.sub(b"", json.dumps(value).encode())
    except RecursionError:
        return _LOST
    return text.count(b'"') if text.count(b"{") + text.count(b"[") < MAX_DEPTH // 2 else _LOST


def _filled(values: Values, shape: Shape, quotes: Counts) -> Values:
    """With objects for those that are not there. What lies within null is null, and in the text it has no quotes."""
    absent, null = shape.struct(), shape.struct(**{f"m{number}": None for number in range(len(shape.members))})
    quotes += np.array([2 * len(shape.members) if value is None else 0 for value in values])
    return [absent if value is ABSENT else null if value is None else value for value in values]


def column(values: Values, rules: Mapping[str, Any], required: bool, certain: bool) -> tuple[pa.Array, Mask]:
    """(a field's values, where they keep its rules); `certain`: all are there, and of the schema's type."""
    kinds = set() if certain else {*map(type, values)}
    refused = {type(ABSENT)} if required else set()
    if "null" not in rules["type"] or "enum" in rules:  # an enum lists texts
        refused.add(NoneType)
    if is_milliseconds := "format" in rules and int in kinds:
        refused.add(str)
    sure = np.ones(len(values), bool)
    if kinds & {type(ABSENT), *refused}:
        sure = np.array([type(value) not in refused for value in values])
        values = [None if value is ABSENT or type(value) in refused else value for value in values]
    array, good = _milliseconds(values) if is_milliseconds else _typed(values, rules)
    return array, sure & good


def _milliseconds(values: Values) -> tuple[pa.Array, Mask]:
    array = pa.array(values, pa.int64())
    good = _kept(array, {"minimum": 0, "maximum": (INSTANTS.stop - 1) // 1000})
    return pc.multiply(array, 1000).cast(INSTANT), good


def _typed(values: Values, rules: Mapping[str, Any]) -> tuple[pa.Array, Mask]:
    array = pa.array(values, next(ARROW[kind] for kind in ARROW if kind in rules["type"]))
    if "format" not in rules:
        return array, _kept(array, rules)
    good = _kept(array, {"pattern": _REAL})
    return (array if good.all() else pc.if_else(pa.array(good), array, None)).cast(INSTANT), good


def _kept(array: pa.Array, rules: Mapping[str, Any]) -> Mask:
    """Where a value keeps the rules; a null keeps all."""
    good = np.ones(len(array), bool)
    if pa.types.is_string(array.type):
        if "minLength" in rules or "maxLength" in rules:
            size = pc.utf8_length(array).fill_null(0).to_numpy()
            good &= (size >= rules.get("minLength", 0)) & (size <= rules.get("maxLength", 2**31))
        if "enum" in rules:
            good &= _mask(pc.is_in(array, pa.array(rules["enum"], pa.string())))
        if "pattern" in rules:
            good &= _mask(pc.match_substring_regex(array, rules["pattern"]))
    elif not pa.types.is_boolean(array.type):
        numbers = array.fill_null(0).to_numpy()
        good &= (numbers >= rules.get("minimum", -np.inf)) & (numbers <= rules.get("maximum", np.inf))
    return good | array.is_null().to_numpy(zero_copy_only=False) if array.null_count else good


def _mask(array: pa.BooleanArray) -> Mask:
    mask: Mask = array.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
