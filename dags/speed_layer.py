"""
Asks the speed layer every five minutes whether it is well, and restarts it when it stands still.

**When.** Every five minutes; one short look at the heartbeat in the ledger, no JVM. A process that ends is started
again at once, by the supervisor.

**When it is red.** A red run is an alarm; its log names it. Answers of `serving.*` stay exact as of the last landed
record; only their freshness suffers.

| alarm | what to do |
|---|---|
| `heartbeat` (silent), `stall` | the run has asked for a restart. If the next one is red too: `./tidemark logs speed` |
| `heartbeat` (stopped, with its error) | the supervisor starts it again; the error names the cause |
| `retention` | records will leave Kafka before they are read: raise the topics' retention now |
| any other | `docs/runbooks/speed-layer.md` |
"""

from airflow.sdk import DAG, CronTriggerTimetable
from tidemark_airflow.operators import TidemarkOperator
from tidemark_airflow.policy import Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import SPEED_LAYER, SPEED_SILENT

EVERY_FIVE_MINUTES = CronTriggerTimetable("*/5 * * * *", timezone="UTC")

with DAG(
    SPEED_LAYER,
    schedule=EVERY_FIVE_MINUTES,
    **dag_arguments(Owner.PLATFORM, [Tag.SPEED, Tag.ALARM], __doc__, retries=0),
):
    TidemarkOperator(
        task_id="watch",
        arguments=("speed", "status", "--json"),
        remedies={SPEED_SILENT: ("restart", "speed")},
    )
