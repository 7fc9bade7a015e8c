"""One event of Tidemark itself to Kafka, acknowledged: a promotion.

contract, event -> Producer -> Kafka.
"""

from collections.abc import Callable
from typing import Any

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.ledger.store import LedgerError
from spark_jobs.messaging import topics
from spark_jobs.messaging.producer import Producer, Record, SendError
from spark_jobs.training.promotion import value

PRODUCER = b"tidemark-models"


def sender(say: Callable[[str], None]) -> Callable[[Contract, dict[str, Any]], None]:
    """Sends one event and says where it is; its topic is made where it is missing. Raises LedgerError."""

    def send(contract: Contract, event: dict[str, Any]) -> None:
        headers = (("schema_version", str(contract.version).encode()), ("producer", PRODUCER))
        record = Record(contract.topic, str(event[contract.key]).encode(), value(event), headers)
        try:
            topics.create(project_contracts())
            with Producer() as producer:
                producer.send([record], lambda sent: say(f"sent: {sent}"))
        except (SendError, topics.TopicsError) as error:
            again = "it is written down, and the next `tidemark model train` or `promote` sends it"
            raise LedgerError(f"the promotion is not in Kafka: {error}; {again}") from error

    return send
