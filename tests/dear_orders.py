"""Views that reject a dear order: what they compute of it does not fit into 64 bits."""

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.api import Aggregate, Count, Row, Sequence, Sum
from spark_jobs.definitions.binder import bind_aggregate, bind_sequence
from spark_jobs.registry.views import Views, event_types_of

TOO_MUCH = "unit_price_cents * 9000000000000"  # of a dear order
BY_DAY, BY_STORE, ROWS = "dear_by_day", "dear_by_store", "dear_rows"
ABOUT = {"owner": "tests", "description": "rejects"}


def views() -> Views:
    """One that is built by days, one that is merged, one that is resolved."""
    types, measures = event_types_of(project_contracts()), {"orders": Count(), "worth": Sum(TOO_MUCH)}
    by = {BY_DAY: {"day": "to_date(occurred_at)"}, BY_STORE: {"store_id": "store_id"}}
    aggregates = [
        bind_aggregate(name, Aggregate(of="order_placed", by=keys, measures=measures, **ABOUT), types)  # type: ignore[arg-type]
        for name, keys in by.items()
    ]
    row = Row(of="order_placed", key="store_id", reach="0 seconds", columns={"worth": TOO_MUCH})
    rows = bind_sequence(ROWS, Sequence(key="store_id", rows={"order": row}, **ABOUT), types)  # type: ignore[arg-type]
    return Views((*aggregates, rows))


DEAR = {"unit_price_cents": 5_000_000}
FIELDS = {BY_DAY: "measure worth", BY_STORE: "measure worth", ROWS: "order column worth"}
"""View -> the part of it that fails."""
