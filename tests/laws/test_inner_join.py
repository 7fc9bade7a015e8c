"""The inner join of docs/views.md, as it stands there, is a view like any other: it loads, and the laws hold."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.registry.views import load_views
from spark_jobs.settings import ROOT
from spark_jobs.testing import cases

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/views.md").read_text(), re.DOTALL)


def disputed(batches: cases.Batches) -> list[dict[str, Any]]:
    """The answer of the page's example, by a loop over all pairs."""
    events = [event for batch in batches for event in batch]
    payments = [event["payment_attempted"] for event in events if "payment_attempted" in event]
    paid = {one["payment_id"]: one for one in sorted(payments, key=lambda one: one["occurred_at"])}
    return [
        {
            "payment_id": dispute["payment_id"],
            "amount_cents": of["amount_cents"],
            "card_id": of["card_id"],
            "disputed_at": datetime.fromisoformat(dispute["occurred_at"]),
            "joined_at": datetime.fromisoformat(max(of["occurred_at"], dispute["occurred_at"])),
        }
        for dispute in (event["payment_disputed"] for event in events if "payment_disputed" in event)
        for of in [paid.get(dispute["payment_id"])]
        if of
    ]


def test_e_the_inner_join_of_the_page_is_short_and_obeys_the_laws(tmp_path: Path) -> None:
    (text,) = (example for example in EXAMPLES if "InnerJoin(" in example)
    assert len(text.splitlines()) <= 10
    (tmp_path / "disputed_payments.py").write_text(text)
    (view,) = load_views(tmp_path)
    assert isinstance(view, SequenceView)
    few = {"payment_id": ["p", "q"], "card_id": ["c"], "amount_cents": [1, 2]}
    assert cases.check(view, disputed, values=few, examples=30).met
