"""The examples on which a model is trained and evaluated.

batch.<view>_results at a version + facts of the labels up to the cut -> examples: features, yes or no, held out or not.

Held out is about a fifth, chosen by a hash of the key: a payment that is held out tonight was held out last night too,
so no model is ever evaluated on what it, or the one before it, was trained on.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_jobs.registry.models import BoundModel
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.training.linear import Bools, Floats

ONE_OF = 5
"""One example of so many is held out."""
IS_HELD_OUT = f"CAST('0x' || left(md5(CAST(key AS VARCHAR)), 8) AS UBIGINT) % {ONE_OF:d} = 0"
"""DuckDB's predicate: the first 32 bits of the key's MD5, modulo ONE_OF, are 0."""
LEAST_OF_A_CLASS = 10
"""Fewer of either class in either part say nothing: with 5 held out, F1 moves by steps of a tenth."""


@dataclass(frozen=True)
class Part:
    """Rows x features, and of each row whether it is a yes."""

    features: Floats
    labels: Bools

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def yes(self) -> int:
        return int(self.labels.sum())


@dataclass(frozen=True)
class Examples:
    """Two disjoint parts; `names` are the features, in the order of the columns."""

    names: tuple[str, ...]
    training: Part
    held_out: Part

    def lacking(self) -> str | None:
        """Why nothing can be learnt from them; None if something can."""
        for what, part in (("to train on", self.training), ("held out", self.held_out)):
            if min(part.yes, len(part) - part.yes) < LEAST_OF_A_CLASS:
                counts = f"{part.yes:,} yes and {len(part) - part.yes:,} no"
                return f"{counts} {what}: at least {LEAST_OF_A_CLASS} of each are needed"
        return None

    def counts(self) -> dict[str, int]:
        return {
            "training": len(self.training),
            "training_yes": self.training.yes,
            "held_out": len(self.held_out),
            "held_out_yes": self.held_out.yes,
        }


def read(model: BoundModel, results_version: int, cut: int) -> Examples:
    """The examples as of a run: the version of the results that it built, the labels with lsn <= cut.

    A label past the cut is not there, however old its payment. Rows are in the order of their time.
    """
    labels, label_key = tables.facts(model.declaration.label_of), f'"{model.declaration.label_key}"'
    sources: dict[str, duckdb_reader.Table] = {"scored": (model.view.tables[1], results_version)}
    if duckdb_reader.exists(labels):
        sources["labels"] = labels
    with duckdb_reader.connect(sources) as con:
        if "labels" not in sources:
            con.execute(f"CREATE TABLE labels AS SELECT key AS {label_key}, 0 AS lsn FROM scored LIMIT 0")
        rows = con.sql(_sql(model, label_key, cut)).to_arrow_table()
    return _examples(model.declaration.features, rows)


def _sql(model: BoundModel, label_key: str, cut: int) -> str:
    features = [f'"{name}"' for name in model.declaration.features]
    whole = " AND ".join(f"{name} IS NOT NULL" for name in features)
    return f"""
        WITH mature AS (
            SELECT * FROM scored
            WHERE opened_at <= (SELECT max(opened_at) FROM scored) - {model.maturity:d} AND {whole}
            ORDER BY opened_at DESC, key LIMIT {model.declaration.most_examples:d}),
        said AS (SELECT DISTINCT {label_key} AS key FROM labels WHERE lsn <= {cut:d})
        SELECT {", ".join(features)}, key IN (SELECT key FROM said) AS is_yes, {IS_HELD_OUT} AS is_held_out
        FROM mature ORDER BY opened_at, key, {", ".join(features)}"""


def _examples(names: tuple[str, ...], table: pa.Table) -> Examples:
    features = np.column_stack([table[name].to_numpy().astype(np.float64) for name in names])
    labels, is_held_out = (
        table[name].to_numpy(zero_copy_only=False).astype(bool) for name in ("is_yes", "is_held_out")
    )
    parts = [Part(features[rows], labels[rows]) for rows in (~is_held_out, is_held_out)]
    return Examples(names, *parts)
