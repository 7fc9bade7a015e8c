"""Weights from examples, by pyspark.ml's LinearSVC.

training part -> Arrow -> Spark DataFrame of one partition -> LinearSVC -> weights in the features' own scale.
"""

import math
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.training.examples import Part
from spark_jobs.training.linear import Weights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITERATIONS = 100
TOLERANCE = 1e-6
REGULARISATION = 1e-3
"""Of the L2 norm: small, for the features are few and the examples many."""
LABEL, VECTOR = "label", "features"


class FitError(RuntimeError):
    """No usable weights came out."""


def fit(spark: "SparkSession", names: tuple[str, ...], part: Part) -> Weights:
    """Train a linear support vector machine (hinge loss, OWL-QN). Raises FitError.

    The same examples give the same weights: nothing is random, and one partition sums in one order. Features are
    standardised inside, by LinearSVC, which gives the weights back in the features' own scale.
    """
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.feature import VectorAssembler

    columns = {name: part.features[:, i] for i, name in enumerate(names)}
    rows = spark.createDataFrame(pa.table(columns | {LABEL: part.labels.astype("float64")})).coalesce(1)
    trained = LinearSVC(
        featuresCol=VECTOR,
        labelCol=LABEL,
        maxIter=ITERATIONS,
        regParam=REGULARISATION,
        tol=TOLERANCE,
        standardization=True,
        fitIntercept=True,
    ).fit(VectorAssembler(inputCols=list(names), outputCol=VECTOR).transform(rows))
    weights = Weights.rounded(trained.intercept, names, trained.coefficients.toArray().tolist())
    if not all(map(math.isfinite, (weights.intercept, *weights.of.values()))):
        raise FitError(f"LinearSVC gave weights that are no numbers: {weights}")
    return weights
