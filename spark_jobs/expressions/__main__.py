"""Show how an expression is rendered: `python -m spark_jobs.expressions "quantity * 2" quantity=BIGINT`."""

import sys
from typing import cast

from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.expression import parse
from spark_jobs.expressions.kinds import Kind


def main(arguments: list[str]) -> int:
    text, *pairs = arguments
    columns = {name: cast(Kind, kind) for name, kind in (pair.split("=", 1) for pair in pairs)}
    try:
        expression = parse(text, columns, "command line")
    except ExpressionError as error:
        print(error, file=sys.stderr)
        return 1
    for name in ("kind", "spark", "spark_fails", "duckdb", "duckdb_fails"):
        print(f"{name:13}{getattr(expression, name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
