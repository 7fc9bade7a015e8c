"""What may be published: of a run that is audited and built on what is in force, the views that lack nothing.

run + its builds -> sources, without the views that have a hole past their cut -> or PublishRefused.
"""

from collections.abc import Mapping

from spark_jobs.ledger.runs import BASE
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.ledger.view_versions import PROMOTES
from spark_jobs.registry.views import Views
from spark_jobs.storage import coverage


class PublishRefused(LedgerError):
    """Publishing would break a promise; the text says which, and what to do."""


def sources_of(run: Run, views: Views, store: Store) -> tuple[dict[str, Source], dict[str, int]]:
    """What the run would publish: its builds; a view with a hole past the cut keeps its old source."""
    built, old = store.built_sources(run.run_id), store.current_sources()
    unbuilt = [view.name for view in views if view.id not in built]
    if unbuilt:
        raise PublishRefused(f"run {run.run_id} has not built {', '.join(unbuilt)}: `tidemark batch build` comes first")
    new = {view.id: built[view.id] for view in views}
    held_back = holes(views, new)
    kept = {view_id: old[view_id] for view_id in held_back if view_id in old}
    return {**{k: v for k, v in new.items() if k not in held_back}, **kept}, held_back


def promoted_by(run: Run, views: Views, served: Mapping[str, Source]) -> dict[str, int]:
    """Name -> the version that the run serves it from, if that lacks nothing."""
    promoted: dict[str, int] = run.summary.get(PROMOTES, {})
    ready_to_serve = {(view.name, view.version) for view in views if view.id in served}
    if lacking := promoted.items() - ready_to_serve:
        said = ", ".join(f"version {version} of {name}" for name, version in sorted(lacking))
        raise PublishRefused(f"{said} lacks partials of an lsn: `tidemark views` shows what is covered")
    return promoted


def holes(views: Views, sources: Mapping[str, Source], head: int | None = None) -> dict[str, int]:
    """View id -> first lsn past its cut, up to head, without its partials; any lsn for one unknown to the speed layer.

    head: by default the newest lsn that is computed.
    """
    if not sources:
        return {}
    lowest = min(source.cut for source in sources.values())
    covered, landed = coverage.covered(lowest), max(coverage.landed(lowest), default=lowest)
    # What has landed and is being computed now is no hole.
    newest = min(landed, max(covered, default=lowest))
    head = newest if head is None else min(head, newest)
    known = coverage.columns()
    holes: dict[str, int] = {}
    for view in views:
        if view.id in sources:
            cut = sources[view.id].cut
            missing = coverage.holes(cut, head, covered, view.column) if view.column in known else [cut + 1]
            if missing:
                holes[view.id] = missing[0]
    return holes


def refuse_unfit(run: Run, store: Store) -> None:
    """A run that would go backwards, or has not passed an audit after its build."""
    current, audit = store.current_publication(), store.audit(run.run_id)
    if current is not None and current.cut > run.cut:
        raise PublishRefused(
            f"run {run.run_id} has cut {run.cut}; publication {current.id} already has {current.cut}. Plan a new run."
        )
    base = run.summary.get(BASE)
    if base is not None and current is not None and not store.extends(current, base):
        raise PublishRefused(
            f"run {run.run_id} was built upon publication {base}, and {current.id} ({current.kind}) is in force now: "
            "what was decided meanwhile would be undone. Plan a new run."
        )
    if audit is None:
        raise PublishRefused(
            f"run {run.run_id} is not audited: `tidemark batch audit --run-id {run.run_id}` comes first"
        )
    if not audit.passed:
        raise PublishRefused(f"the audit of run {run.run_id} failed; nothing is published. See {audit.docs_url}")
    built = [build.finished_at for build in store.builds(run.run_id).values()]
    if built and audit.at < max(built):
        raise PublishRefused(f"run {run.run_id} was built again after its audit: audit it again")
