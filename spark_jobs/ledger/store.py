"""The ledger as one object: `store = ledger.store.open()`.

Every decision goes through here; nothing else writes the ledger's tables. Methods open and close their own
transaction, so each is atomic on its own.
"""

from sqlalchemy import URL

from spark_jobs.ledger.alarms import Alarms
from spark_jobs.ledger.database import LedgerError, connect
from spark_jobs.ledger.erasures import Erasures
from spark_jobs.ledger.forgetting import Forgetting
from spark_jobs.ledger.leases import Busy
from spark_jobs.ledger.messages import Messages
from spark_jobs.ledger.model_versions import ModelVersions
from spark_jobs.ledger.pins import Pins
from spark_jobs.ledger.publications import Publications
from spark_jobs.ledger.replays import Replays
from spark_jobs.ledger.runs import Runs
from spark_jobs.ledger.turns import Merged, NothingToDo, RunActive
from spark_jobs.ledger.verifications import Verifications
from spark_jobs.ledger.view_versions import ViewVersions

__all__ = ["Busy", "LedgerError", "Merged", "NothingToDo", "RunActive", "Store", "open"]


class Store(
    Messages,
    Alarms,
    Runs,
    Replays,
    Publications,
    Pins,
    ViewVersions,
    ModelVersions,
    Verifications,
    Erasures,
    Forgetting,
):
    """Messages, alarms, leases, runs, replays, publications and pins, definitions, models, checks, erasures."""


def open(at: URL | None = None) -> Store:
    """The ledger of this installation, created at the first use."""
    return Store(connect(at))
