"""What a view has, whatever its kind: a name, a version, a declaration, and the names of what is stored of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.definitions.spec import Aggregate, Lookup, Sequence


def batch_tables(view_id: str) -> tuple[str, str, str]:
    """Where builds of a view go: an aggregate's partials; a sequence's rows; its results."""
    return f"batch.{view_id}", f"batch.{view_id}_rows", f"batch.{view_id}_results"


@dataclass(frozen=True, eq=False)
class AnyView:
    name: str
    version: int
    declaration: Aggregate | Sequence

    @property
    def id(self) -> str:
        """The file's and the tables' name: `orders_by_day`, later `orders_by_day_v2`."""
        return self.name if self.version == 1 else f"{self.name}_v{self.version}"

    @property
    def column(self) -> str:
        """The struct column of speed.partials."""
        return f"{self.name}_v{self.version}"

    @property
    def owner(self) -> str:
        return self.declaration.owner

    @property
    def description(self) -> str:
        return self.declaration.description

    @property
    def lookups(self) -> Mapping[str, Lookup]:
        """Column -> where its value is looked up when the question is asked."""
        return {}

    @property
    def looked_up(self) -> frozenset[str]:
        """The names of the views whose answers are looked up."""
        return frozenset(lookup.view for lookup in self.lookups.values())
