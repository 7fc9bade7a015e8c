"""One event of Tidemark itself to Kafka, acknowledged: a promotion.

contract, event -> the project's producer -> Kafka.
"""

from collections.abc import Callable
from typing import Any

from kafka.errors import KafkaError

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.ledger.store import LedgerError
from spark_jobs.messaging import topics
from spark_jobs.sample import block
from spark_jobs.sample.producer import Producer, SendError, Sent
from spark_jobs.training.promotion import value

PRODUCER = b"tidemark-models"


def sender(say: Callable[[str], None]) -> Callable[[Contract, dict[str, Any]], None]:
    """Sends one event and says where it is; its topic is made where it is missing. Raises LedgerError."""

    def told(sent: Sent) -> None:
        say(f"sent: {sent.block.topic} partition {sent.partition} offset {sent.offset}")

    def send(contract: Contract, event: dict[str, Any]) -> None:
        headers = [("schema_version", str(contract.version).encode()), ("producer", PRODUCER)]
        key = str(event[contract.key]).encode()
        try:
            topics.create(project_contracts())
            with Producer(told, {contract.topic: headers}) as producer:
                producer.send(block.facts(contract.topic, [key], [value(event)]))
        except (SendError, topics.TopicsError, KafkaError) as error:
            again = "it is written down, and the next `tidemark model train` or `promote` sends it"
            raise LedgerError(f"the promotion is not in Kafka: {error}; {again}") from error

    return send
