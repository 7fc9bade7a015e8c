"""What a view is served from: the versions of its batch tables, and the cut past which the speed layer answers."""

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


UNBUILT = Source(batch_version=None, results_version=None, cut=0, horizon=None)
"""A view that no publication has built yet."""
