"""What a view is served from: the versions of its batch tables, and the cut past which the speed layer answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # whoever asks the ledger alone need not load what views are made of
    from spark_jobs.definitions.bound_view import View


@dataclass(frozen=True)
class Source:
    """One view's part of a publication. Versions are None where nothing is built: then the speed layer answers alone.

    batch_version: of `batch.<view>` or `batch.<view>_rows`; results_version: of `batch.<view>_results`; cut: the last
    lsn in the build. For a sequence, speed rows before the `horizon` and those of `hot_keys` (named by
    `sequences.digest`) are deferred to the next build.
    """

    batch_version: int | None
    results_version: int | None
    cut: int
    horizon: datetime | None
    hot_keys: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of the view's tables, in the order of `view.tables`; none where it was never built."""
        return tuple(version for version in (self.batch_version, self.results_version) if version is not None)

    def columns(self) -> dict[str, Any]:
        """Its columns in the rows of the ledger; hot keys have rows of their own."""
        return {name: value for name, value in vars(self).items() if name != "hot_keys"}

    def tables(self, view: "View") -> list[tuple[str, int]]:
        """The Delta tables that it reads of the view, each with its version."""
        return list(zip(view.tables, self.versions, strict=False))


UNBUILT = Source(batch_version=None, results_version=None, cut=0, horizon=None)
"""A view that no publication has built yet."""


def with_unbuilt(view_ids: Iterable[str], known: Mapping[str, Source]) -> dict[str, Source]:
    """A source for each view: the publication's, or UNBUILT where the speed layer alone serves it."""
    return {view_id: known.get(view_id, UNBUILT) for view_id in view_ids}
