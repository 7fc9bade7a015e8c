"""A view never changes in place: its file must say what it said when the view was first computed.

views -> text of each -> the ledger keeps the first one -> nothing, or ViewChanged with the difference.
A stored partial does not know the expression that made it, so old and new ones would be added up unnoticed.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.registry.views import Views


class ViewChanged(LedgerError):
    """Which views say something else than what they were computed by, and what."""


def check(store: Store, views: Views | Sequence[View]) -> None:
    """Compare the stored views with the ledger's texts of them; a new view's text is written down.

    Raises ViewChanged, and changes nothing then.
    """
    known = refuse_changed(store, views)
    store.define({view.id: text_of(view) for view in views if view.id not in known})


def refuse_changed(store: Store, views: Views | Sequence[View]) -> Mapping[str, str]:
    """The ledger's texts, by view id; it writes nothing down. Raises ViewChanged."""
    known = store.view_texts()
    changed = [view for view in views if view.id in known and known[view.id] != text_of(view)]
    if changed:
        raise ViewChanged("\n".join(_report(view, known[view.id]) for view in changed))
    return known


def _report(view: View, before: str) -> str:
    now = text_of(view)
    difference = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "computed by", "the file", lineterm="", n=1
    )
    return (
        f"{view.id} has changed, but is still version {view.version}: what is stored was made by the old text. "
        f"Write the new one to {view.name}_v{view.version + 1}.py beside it with version={view.version + 1}, and "
        "put this file back.\n" + "\n".join(difference)
    )


FREE = {"owner": "", "description": "", "alert": None}
"""What may change under one version, as nothing that is stored depends on it."""


def text_of(view: View) -> str:
    """All that decides the view's numbers, a line each; its owner, description and alerts do not."""
    free = {name: value for name, value in FREE.items() if hasattr(view.declaration, name)}
    declared: Any = replace(cast(Any, view.declaration), **free)
    return "\n".join(_lines("view", declared)) + "\n"


def _lines(name: str, value: Any) -> Iterator[str]:
    if is_dataclass(value):
        yield f"{name}: {type(value).__name__}"
        for field in fields(value):
            if getattr(value, field.name) != field.default:
                yield from _lines(f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(f"{name}[{key}]", item)
    elif isinstance(value, str):
        words = [" ".join(line.split()) for line in value.splitlines()]
        yield from (f"{name}: {line}" for line in words if line)
    elif value:
        yield f"{name}: {value!r}"
