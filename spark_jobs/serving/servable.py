"""Say which views can be served from a set of sources, each in one version."""

from collections.abc import Mapping

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views


def ready(views: Views, sources: Mapping[str, Source], promoted: Mapping[str, int]) -> dict[str, Source]:
    """One source per view: that of the promoted version, else of the earliest that is there."""
    chosen: dict[str, View] = {}
    for view in sorted((view for view in views if view.id in sources), key=lambda view: view.version):
        if view.name not in chosen or promoted.get(view.name) == view.version:
            chosen[view.name] = view
    return {view.id: sources[view.id] for view in chosen.values()}


def servable(views: Views, sources: Mapping[str, Source]) -> list[Served]:
    """The views of `sources` and those chained to them, if every view that they look up is there."""
    every: list[Served] = [*(view for view in views if view.id in sources), *views.chained]
    return [view for view in every if _is_servable(view, {other.name for other in views if other.id in sources})]


def _is_servable(view: Served, names: set[str]) -> bool:
    if isinstance(view, ChainedView):
        return _is_servable(view.base, names)
    return {view.name, *view.looked_up} <= names
