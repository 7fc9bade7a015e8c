"""What an operator agrees to lose, so that the stream goes on past a hole: `tidemark speed recover --accept`.

losses as they were shown -> a request in the ledger -> the next start, if just these are lost by then.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from spark_jobs.ledger.store import Store
from spark_jobs.speed.continuity import Loss

log = logging.getLogger("tidemark.speed")

REQUEST = "recover"


def accept(store: Store, losses: Iterable[Loss]) -> None:
    """Ask the next start to go on without them."""
    store.request(REQUEST, losses=[asdict(loss) for loss in losses])


def accepted(store: Store, losses: Sequence[Loss]) -> tuple[int, list[Loss]] | None:
    """The request of an operator who agreed to just these losses, and the losses as they were shown."""
    while (request := store.next_request(REQUEST)) is not None:
        shown = [Loss(**loss) for loss in request.arguments.get("losses", ())]
        if {loss.hole for loss in shown} == {loss.hole for loss in losses}:
            return request.id, shown
        said = "something else is lost now: " + "; ".join(map(str, losses))
        store.answer_request(request.id, {"error": said}, failed=True)
        log.warning("the accepted loss does not count, %s", said)
    return None
