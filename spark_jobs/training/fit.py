"""Fit a model's weights to examples, by pyspark.ml's LinearSVC.

training part -> Arrow -> Spark DataFrame of one partition -> LinearSVC -> weights in the features' own scale.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.ledger.store import LedgerError
from spark_jobs.training.examples import Part
from spark_jobs.training.linear import Weights

if TYPE_CHECKING:
    from pyspark.ml.classification import LinearSVCModel
    from pyspark.sql import DataFrame, SparkSession

ITERATIONS = 25
TOLERANCE = 1e-6
REGULARISATION = 1e-2
"""The weight of the L2 norm. With ten times less the optimiser went astray on the town's payments."""
NEAR = 1.01
"""A last loss up to so many times the least is as good: around the minimum losses go up and down a little."""
LABEL, VECTOR = "label", "features"


class FitError(LedgerError):
    """No usable weights came out."""


def fit(spark: "SparkSession", names: tuple[str, ...], part: Part) -> Weights:
    """Train a linear support vector machine (hinge loss, OWL-QN). Raises FitError.

    The same examples give the same weights: nothing is random, and one partition sums in one order. Features are
    standardised inside, by LinearSVC, which gives the weights back in the features' own scale.
    """
    from pyspark.ml.feature import VectorAssembler

    columns = {name: part.features[:, i] for i, name in enumerate(names)}
    rows = spark.createDataFrame(pa.table(columns | {LABEL: part.labels.astype("float64")})).coalesce(1)
    assembled = VectorAssembler(inputCols=list(names), outputCol=VECTOR).transform(rows).select(VECTOR, LABEL)
    # Else each of some 150 tasks is sent all rows: they are in the plan, whoever keeps what it gives.
    trained = _at_its_best(assembled.localCheckpoint())
    weights = Weights.rounded(trained.intercept, names, trained.coefficients.toArray().tolist())
    if not all(map(math.isfinite, (weights.intercept, *weights.of.values()))):
        raise FitError(f"LinearSVC gave weights that are no numbers: {weights}")
    return weights


def _at_its_best(rows: "DataFrame") -> "LinearSVCModel":
    """The model at the step with the least loss.

    Hinge loss has kinks, at which the optimiser's line search can fail; LinearSVC then returns where that ended
    [measured: loss 0.019 before, 0.873 after]. So the losses on the way are looked at, and if the last is not the
    least, the same fit runs again, only as far as that step.
    """
    from pyspark.ml.classification import LinearSVC

    svc = LinearSVC(featuresCol=VECTOR, labelCol=LABEL, regParam=REGULARISATION, tol=TOLERANCE, standardization=True)
    trained: LinearSVCModel = svc.setMaxIter(ITERATIONS).fit(rows)
    best = best_iteration(trained.summary().objectiveHistory)
    return trained if best is None else svc.setMaxIter(best).fit(rows)


def best_iteration(losses: Sequence[float]) -> int | None:
    """The step with the least loss; None: the last one is as good. Raises FitError if the start was the best."""
    known = [loss if math.isfinite(loss) else math.inf for loss in losses]
    best = known.index(min(known)) if known else 0
    if best == 0:
        raise FitError(f"LinearSVC found nothing better than its start: losses {known}")
    return None if losses[-1] <= losses[best] * NEAR else best
