"""Everything that a view file or a model file imports: plain data, no engine.

Nothing here imports duckdb, pyarrow or sqlglot, so a DAG can read definitions in an environment without them.
"""

from spark_jobs.definitions.measures.distinct import ApproxDistinct, CountDistinct
from spark_jobs.definitions.measures.moments import StdDev, Variance
from spark_jobs.definitions.measures.ordered import First, Last
from spark_jobs.definitions.measures.quantile import ApproxQuantile
from spark_jobs.definitions.measures.sums import Count, Max, Mean, Min, Sum
from spark_jobs.definitions.model_spec import LinearModel
from spark_jobs.definitions.spec import Aggregate, Alert, Hopping, Lookup, Row, Sequence, Top, Trailing

__all__ = [
    "Aggregate",
    "Alert",
    "ApproxDistinct",
    "ApproxQuantile",
    "Count",
    "CountDistinct",
    "First",
    "Hopping",
    "Last",
    "LinearModel",
    "Lookup",
    "Max",
    "Mean",
    "Min",
    "Row",
    "Sequence",
    "StdDev",
    "Sum",
    "Top",
    "Trailing",
    "Variance",
]
