"""Text. Lengths and positions count code points; case changes A-Z and a-z alone; trim removes spaces (U+0020) alone."""

from string import ascii_lowercase, ascii_uppercase

from spark_jobs.expressions.operations.operation import Table, table


def _case(function: str, of: str, to: str) -> tuple[str, str]:
    """Engines fold letters outside ASCII differently. `translate` is exact but slow, and most text is ASCII:
    as many bytes as code points."""
    template = "(CASE WHEN {bytes}({{0}}) = length({{0}}) THEN {f}({{0}}) ELSE translate({{0}}, '{of}', '{to}') END)"
    spark = template.format(bytes="octet_length", f=function, of=of, to=to)
    return spark, template.format(bytes="strlen", f=function, of=of, to=to)


TEXT: Table = table(
    {
        "concat(STRING, STRING) -> STRING": "({0} || {1})",
        "length(STRING) -> BIGINT": ("CAST(length({0}) AS BIGINT)", "length({0})"),
        # Start and length are literals, checked by the parser: start >= 1, length >= 0.
        "substring(STRING, BIGINT, BIGINT) -> STRING": "substring({0}, {1}, {2})",
        "trim(STRING) -> STRING": ("trim({0})", "trim({0}, ' ')"),
        "ltrim(STRING) -> STRING": ("ltrim({0})", "ltrim({0}, ' ')"),
        "rtrim(STRING) -> STRING": ("rtrim({0})", "rtrim({0}, ' ')"),
        "lower(STRING) -> STRING": _case("lower", ascii_uppercase, ascii_lowercase),
        "upper(STRING) -> STRING": _case("upper", ascii_lowercase, ascii_uppercase),
        "contains(STRING, STRING) -> BOOLEAN": "contains({0}, {1})",
        "startswith(STRING, STRING) -> BOOLEAN": ("startswith({0}, {1})", "starts_with({0}, {1})"),
        "endswith(STRING, STRING) -> BOOLEAN": ("endswith({0}, {1})", "ends_with({0}, {1})"),
        # The searched text is a literal, checked by the parser not to be empty.
        "replace(STRING, STRING, STRING) -> STRING": "replace({0}, {1}, {2})",
        "instr(STRING, STRING) -> BIGINT": ("CAST(instr({0}, {1}) AS BIGINT)", "instr({0}, {1})"),
        # A literal pattern, checked by the parser; the backslash escapes.
        "like(STRING, STRING) -> BOOLEAN": ("({0} LIKE {1})", "({0} LIKE {1} ESCAPE '\\')"),
        # The regular expression comes from `patterns.py`: one class of characters written as code points.
        "split(STRING, STRING) -> ARRAY<STRING>": ("split({0}, {1}, -1)", "string_split_regex({0}, {1})"),
        "size(ARRAY<STRING>) -> BIGINT": ("CAST(array_size({0}) AS BIGINT)", "len({0})"),
        # From 0, a literal; NULL past the end.
        "get(ARRAY<STRING>, BIGINT) -> STRING, nulls own": ("get({0}, CAST({1} AS INT))", "{0}[{1} + 1]"),
    }
)
