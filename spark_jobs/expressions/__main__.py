"""Show how an expression is rendered: `python -m spark_jobs.expressions "quantity * 2" quantity=BIGINT`."""

import sys
from typing import cast

from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.expression import parse
from spark_jobs.expressions.kinds import Kind

if __name__ == "__main__":
    text, *pairs = sys.argv[1:]
    columns = cast(dict[str, Kind], dict(pair.split("=", 1) for pair in pairs))
    try:
        expression = parse(text, columns, "command line")
    except ExpressionError as error:
        sys.exit(str(error))
    for name in ("kind", "spark", "spark_fails", "duckdb", "duckdb_fails"):
        print(f"{name:13}{getattr(expression, name)}")
