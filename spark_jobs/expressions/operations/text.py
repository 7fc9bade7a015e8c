"""Text. Lengths and positions count code points; case changes A-Z and a-z alone; trim removes spaces (U+0020) alone."""

from string import ascii_lowercase, ascii_uppercase

from spark_jobs.expressions.operations.operation import Operation, Table, alike


def _case(function: str, of: str, to: str) -> Operation:
    """Engines fold letters outside ASCII differently. `translate` is exact but slow, and most text is ASCII:
    as many bytes as code points."""
    template = "(CASE WHEN {bytes}({{0}}) = length({{0}}) THEN {f}({{0}}) ELSE translate({{0}}, '{of}', '{to}') END)"
    spark = template.format(bytes="octet_length", f=function, of=of, to=to)
    return Operation(("STRING",), "STRING", spark, template.format(bytes="strlen", f=function, of=of, to=to))


def _trim(function: str) -> tuple[Operation, ...]:
    return (Operation(("STRING",), "STRING", f"{function}({{0}})", f"{function}({{0}}, ' ')"),)


def _search(spark: str, duckdb: str) -> tuple[Operation, ...]:
    return (Operation(("STRING", "STRING"), "BOOLEAN", f"{spark}({{0}}, {{1}})", f"{duckdb}({{0}}, {{1}})"),)


TEXT: Table = {
    "concat": (alike(("STRING", "STRING"), "STRING", "({0} || {1})"),),
    "length": (Operation(("STRING",), "BIGINT", "CAST(length({0}) AS BIGINT)", "length({0})"),),
    # Start and length are literals, checked by the parser: start >= 1, length >= 0.
    "substring": (alike(("STRING", "BIGINT", "BIGINT"), "STRING", "substring({0}, {1}, {2})"),),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "lower": (_case("lower", ascii_uppercase, ascii_lowercase),),
    "upper": (_case("upper", ascii_lowercase, ascii_uppercase),),
    "contains": _search("contains", "contains"),
    "startswith": _search("startswith", "starts_with"),
    "endswith": _search("endswith", "ends_with"),
    # The searched text is a literal, checked by the parser not to be empty.
    "replace": (alike(("STRING", "STRING", "STRING"), "STRING", "replace({0}, {1}, {2})"),),
    "instr": (Operation(("STRING", "STRING"), "BIGINT", "CAST(instr({0}, {1}) AS BIGINT)", "instr({0}, {1})"),),
    # A literal pattern, checked by the parser; the backslash escapes.
    "like": (Operation(("STRING", "STRING"), "BOOLEAN", "({0} LIKE {1})", "({0} LIKE {1} ESCAPE '\\')"),),
    # The regular expression comes from `patterns.py`: one class of characters written as code points.
    "split": (Operation(("STRING", "STRING"), "ARRAY<STRING>", "split({0}, {1}, -1)", "string_split_regex({0}, {1})"),),
    "size": (Operation(("ARRAY<STRING>",), "BIGINT", "CAST(array_size({0}) AS BIGINT)", "len({0})"),),
    # From 0, a literal; NULL past the end.
    "get": (
        Operation(("ARRAY<STRING>", "BIGINT"), "STRING", "get({0}, CAST({1} AS INT))", "{0}[{1} + 1]", nulls="own"),
    ),
}
