"""Random typed expressions: text from the grammar of the subset.

kind + depth -> text of an expression of that kind over COLUMNS
"""

import re
from datetime import date

from hypothesis import strategies as st

from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations.instant import MIN_INSTANT, UNITS
from tests.laws.expression_values import COLUMNS, EDGES, VALUES

KINDS: tuple[Kind, ...] = ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "DATE", "ARRAY<STRING>")
ORDERED = KINDS[:-1]


def _each(text: str) -> list[str]:
    """The templates of a block: separated by two spaces or more."""
    return re.split(r"\s{2,}", text.strip())


# By kind of the result. `<KIND>` is a sub-expression, `<X>` one of the result's kind, `<T>` one of a kind drawn once.
# Spark's INT functions are cast, for INT arithmetic is not in the subset.
TEMPLATES: dict[Kind, list[str]] = {
    "BIGINT": _each("""
        <X> + <X>  <X> - <X>  <X> * <X>  <X> div <X>  <X> % <X>  - <X>  abs(<X>)  floor(<X>)  ceil(<X>)  round(<X>)
        try_add(<X>, <X>)  try_subtract(<X>, <X>)  try_multiply(<X>, <X>)  try_cast(<STRING> AS BIGINT)
        floor(<DOUBLE>)  ceil(<DOUBLE>)  unix_micros(<TIMESTAMP>)  unix_millis(<TIMESTAMP>)  unix_seconds(<TIMESTAMP>)
        CAST(<DOUBLE> AS BIGINT)  CAST(<STRING> AS BIGINT)  CAST(<BOOLEAN> AS BIGINT)
        CAST(length(<STRING>) AS BIGINT)  CAST(instr(<STRING>, 'b') AS BIGINT)  CAST(size(<ARRAY>) AS BIGINT)
        CAST(year(<TIMESTAMP>) AS BIGINT)  CAST(dayofweek(<TIMESTAMP>) AS BIGINT)  CAST(quarter(<TIMESTAMP>) AS BIGINT)
        CAST(hour(<TIMESTAMP>) AS BIGINT)  CAST(minute(<TIMESTAMP>) AS BIGINT)  CAST(second(<TIMESTAMP>) AS BIGINT)
        CAST(year(<DATE>) AS BIGINT)  CAST(quarter(<DATE>) AS BIGINT)  CAST(month(<DATE>) AS BIGINT)
        CAST(day(<DATE>) AS BIGINT)  CAST(dayofweek(<DATE>) AS BIGINT)  CAST(datediff(<DATE>, <DATE>) AS BIGINT)
        timestampdiff(MICROSECOND, <TIMESTAMP>, <TIMESTAMP>)  timestampdiff(MILLISECOND, <TIMESTAMP>, <TIMESTAMP>)
        timestampdiff(HOUR, <TIMESTAMP>, <TIMESTAMP>)  timestampdiff(DAY, <TIMESTAMP>, <TIMESTAMP>)
    """),
    "DOUBLE": _each("""
        <X> + <X>  <X> - <X>  <X> * <X>  <X> / <X>  <BIGINT> / <BIGINT>  - <X>  abs(<X>)  sqrt(<X>)  round(<X>)
        try_divide(<X>, <X>)  <X> * <BIGINT>  coalesce(<BIGINT>, <X>)  greatest(<BIGINT>, <X>)
        CAST(<BIGINT> AS DOUBLE)  CAST(<STRING> AS DOUBLE)  CAST(<BOOLEAN> AS DOUBLE)
    """),
    "STRING": _each("""
        concat(<X>, <X>)  <X> || <X>  trim(<X>)  ltrim(<X>)  rtrim(<X>)  lower(<X>)  upper(<X>)
        substring(<X>, 1, 2)  substring(<X>, 2)  substring(<X>, 3, 0)  replace(<X>, 'a', <X>)
        CAST(<BIGINT> AS STRING)  CAST(<BOOLEAN> AS STRING)  CAST(<DATE> AS STRING)  CAST(<TIMESTAMP> AS STRING)
        get(<ARRAY>, 0)  get(<ARRAY>, 2)
    """),
    "BOOLEAN": _each(r"""
        <T> = <T>  <T> <> <T>  <T> < <T>  <T> <= <T>  <T> > <T>  <T> >= <T>  <T> <=> <T>  <T> IS DISTINCT FROM <T>
        <X> AND <X>  <X> OR <X>  NOT <X>  <X> IS TRUE  <X> IS NOT FALSE  <T> IS NULL  <ARRAY> IS NOT NULL
        <T> BETWEEN <T> AND <T>  <DOUBLE> < <BIGINT>  <BIGINT> = <DOUBLE>  CAST(<BIGINT> AS BOOLEAN)
        <BIGINT> IN (1L, 7L, -1L)  <BIGINT> IN (0,1,2,3,4,5,6,7,8,9,10,11,12,13)  <DATE> IN (DATE '2024-02-29')
        <STRING> IN ('a', '', 'Ärger')  <STRING> IN ('a','b','c','d','e','f','g','h','i','j','k','ß')
        <STRING> LIKE 'a%'  <STRING> NOT LIKE '%_b%'  <STRING> LIKE '%\%%'  <STRING> LIKE '_'  <STRING> LIKE '%日_語'
        <STRING> LIKE '%\\\\d'  <STRING> LIKE '%\\%%'
        contains(<STRING>, <STRING>)  startswith(<STRING>, <STRING>)  endswith(<STRING>, <STRING>)
    """),
    "TIMESTAMP": _each("""
        window_start('10 seconds', <X>)  window_start('7 days', <X>)  window_start('1500 milliseconds', <X>)
        <X> + INTERVAL '10' SECOND  <X> - INTERVAL '36' HOUR  <X> + INTERVAL '3000000' DAY
        CAST(<DATE> AS TIMESTAMP)  CAST(trim(<STRING>) AS TIMESTAMP)
    """)
    + [f"date_trunc('{unit}', <X>)" for unit in UNITS],
    "DATE": _each("to_date(<TIMESTAMP>)  CAST(trim(<STRING>) AS DATE)  date_add(<X>, 31)  date_sub(<X>, 1)"),
    "ARRAY<STRING>": [f"split(<STRING>, '{p}')" for p in (",", "[^a-z]+", r"[\\s,]+", "[A-Z0-9b]", " +", r"\\W", "é")],
}
for _kind in KINDS:
    TEMPLATES[_kind] += _each("""
        CASE WHEN <BOOLEAN> THEN <X> ELSE <X> END  CASE <T> WHEN <T> THEN <X> END  if(<BOOLEAN>, <X>, <X>)
        coalesce(<X>, <X>)  coalesce(<X>, <X>, <X>)
    """)
for _kind in ORDERED:
    TEMPLATES[_kind] += _each("nullif(<X>, <X>)  greatest(<X>, <X>, <X>)  least(<X>, <X>)")


def _instant(micros: int) -> str:
    days, rest = divmod(micros - MIN_INSTANT, 86_400_000_000)
    clock, fraction = divmod(rest, 1_000_000)
    time = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}.{fraction:06}"
    return f"TIMESTAMP '{date.fromordinal(days + 1)} {time}'"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


_LITERALS: dict[Kind, st.SearchStrategy[str]] = {
    "BIGINT": VALUES["BIGINT"].map(lambda n: f"{n}L"),
    "DOUBLE": VALUES["DOUBLE"].filter(lambda x: abs(x) < float("inf")).map(lambda x: f"{x!r}D"),
    # Spark would substitute ${x} in the raw text, and sqlglot's text holds no NUL.
    "STRING": st.sampled_from([text for text in EDGES["STRING"] if "\x00" not in text and "${" not in text]).map(
        _quoted
    ),
    "BOOLEAN": st.sampled_from(["TRUE", "FALSE"]),
    "TIMESTAMP": VALUES["TIMESTAMP"].map(_instant),
    "DATE": VALUES["DATE"].map(lambda day: f"DATE '{day}'"),
    "ARRAY<STRING>": st.just("split(s, ',')"),
}


@st.composite
def texts(draw: st.DrawFn, kind: Kind, depth: int) -> str:
    """The text of an expression of this kind, nested at most `depth` deep."""
    names = [name for name, k in COLUMNS.items() if k == kind]
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(names)) if names and draw(st.integers(0, 3)) else draw(_LITERALS[kind])
    template = f"({draw(st.sampled_from(TEMPLATES[kind]))})"
    holes = _holes(kind, draw(st.sampled_from(ORDERED)))
    while hole := min((h for h in holes if h in template), key=template.index, default=None):
        template = template.replace(hole, draw(texts(holes[hole], depth - 1)), 1)
    return template


def edge_texts() -> list[str]:
    """Each template over columns; one with `<T>` for every kind."""
    made = [
        _over_columns(template, _holes(kind, drawn))
        for kind, templates in TEMPLATES.items()
        for template in templates
        for drawn in (ORDERED if "<T>" in template else ORDERED[:1])
    ]
    return list(dict.fromkeys(made))


def _holes(kind: Kind, drawn: Kind) -> dict[str, Kind]:
    return {f"<{k}>": k for k in ORDERED} | {"<ARRAY>": "ARRAY<STRING>", "<X>": kind, "<T>": drawn}


def _over_columns(template: str, holes: dict[str, Kind]) -> str:
    for hole, kind in holes.items():
        names = [name for name, k in COLUMNS.items() if k == kind] or ["split(s, '[, ]')", "split(u, 'b')"]
        for n in range(template.count(hole)):
            template = template.replace(hole, names[n % len(names)], 1)
    return template
