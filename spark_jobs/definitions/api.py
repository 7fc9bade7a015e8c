"""Everything that a view file or a model file imports: plain data, no engine.

Nothing here imports duckdb, pyarrow or sqlglot, so a DAG can read definitions in an environment without them.
"""

from spark_jobs.definitions.measures.approximate import ApproxDistinct, ApproxQuantile
from spark_jobs.definitions.measures.exact import (
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    MaxBy,
    Mean,
    Min,
    MinBy,
    StdDev,
    Sum,
    Variance,
)
from spark_jobs.definitions.spec import (
    Aggregate,
    Alert,
    Hopping,
    InnerJoin,
    LinearModel,
    Lookup,
    Row,
    Sequence,
    Side,
    Top,
    Trailing,
)

__all__ = [
    "Aggregate",
    "Alert",
    "ApproxDistinct",
    "ApproxQuantile",
    "Count",
    "CountDistinct",
    "First",
    "Hopping",
    "InnerJoin",
    "Last",
    "LinearModel",
    "Lookup",
    "Max",
    "MaxBy",
    "Mean",
    "Min",
    "MinBy",
    "Row",
    "Sequence",
    "Side",
    "StdDev",
    "Sum",
    "Top",
    "Trailing",
    "Variance",
]
