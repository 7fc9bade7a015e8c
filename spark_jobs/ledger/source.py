"""What a view is served from: the versions of its batch tables, and the cut past which the speed layer answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Source:
    """One view's part of a publication. None: never built, so that the speed part is all there is.

    batch_version: of `batch.<view>` or `batch.<view>_rows`; results_version: of `batch.<view>_results`; cut: the last
    lsn in the build; horizon: speed rows before it wait for the next build (sequences), and so do those of the
    `hot_keys`, which are named by `deferred_rows.digest`.
    """

    batch_version: int | None
    results_version: int | None
    cut: int
    horizon: datetime | None
    hot_keys: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of the view's tables, in the order of `view.tables`; none where it was never built."""
        return tuple(one for one in (self.batch_version, self.results_version) if one is not None)


UNBUILT = Source(batch_version=None, results_version=None, cut=0, horizon=None)
"""A view that no publication has built yet."""


def with_unbuilt(view_ids: Iterable[str], known: Mapping[str, Source]) -> dict[str, Source]:
    """A source for each view: that of a publication, or of what the speed layer alone serves."""
    return {view_id: known.get(view_id, UNBUILT) for view_id in view_ids}
