"""Compare two versions of a view row by row: what would change for readers.

view name -> its two newest versions over the same log -> rows that differ, in words.
"""

from collections.abc import Mapping

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.chained_view import Served
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Comparison, Shape, compare, shape_of
from spark_jobs.serving.explain import ExplainError
from spark_jobs.serving.local_answer import LocalAnswers


def difference(views: Views, name: str, sources: Mapping[str, Source], head: int) -> tuple[View, View, Comparison]:
    """The newest version of `name` but one, the newest, and their rows up to `head`, in the columns that both serve.

    Raises ExplainError if there are not two.
    """
    versions = sorted((view for view in views if view.name == name), key=lambda view: view.version)
    if len(versions) < 2:
        known = f"only version {versions[0].version}" if versions else "no such view"
        raise ExplainError(f"{name}: {known}; a second version is a file {name}_v2.py with version=2")
    old, new = versions[-2:]
    merged = LocalAnswers(views, sources, head)
    return old, new, compare(merged.con, merged.answer(old), merged.answer(new), common_shape(old, new))


def common_shape(old: Served, new: Served) -> Shape:
    """The columns that both serve. A key that only one has is left out: its rows cannot be told apart.

    Raises ExplainError where no key is left.
    """
    old_shape, new_shape = shape_of(old, served=True), shape_of(new, served=True)
    keys = [key for key in old_shape.keys if key in new_shape.keys]
    if not keys:
        raise ExplainError(f"{old.id} and {new.id} have no key in common")
    return Shape(keys, [value for value in old_shape.values if value in new_shape.values], old_shape.tolerances)
