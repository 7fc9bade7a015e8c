"""
Asks the speed layer every minute whether it is well, and restarts it when it stands still.

**When.** Every minute; one short look at the heartbeat in the ledger, no JVM.

**When it is red.** A red run is an alarm; its log names it (lag, stall, hole, retention, a view set aside). Answers of
`serving.*` stay exact as of the last landed record; only their freshness suffers.

| alarm | what to do |
|---|---|
| stall | the run has already asked for a restart; if the next run is red too: `./tidemark logs speed` |
| lag | the speed layer is slower than the producers; `./tidemark speed status` shows by how much |
| hole, view set aside | `./tidemark speed status`, then `docs/runbooks/` |
| retention | records will leave Kafka before they are read: raise the topics' retention now |
"""

from airflow.sdk import DAG, CronTriggerTimetable
from tidemark_airflow.command import SPEED_STALLED
from tidemark_airflow.operators import TidemarkOperator
from tidemark_airflow.policy import Owner, Tag, dag_arguments

EVERY_MINUTE = CronTriggerTimetable("* * * * *", timezone="UTC")

with DAG(
    "speed_layer",
    schedule=EVERY_MINUTE,
    **dag_arguments(Owner.PLATFORM, [Tag.SPEED, Tag.ALARM], __doc__, retries=0),
):
    TidemarkOperator(
        task_id="watch",
        arguments=("speed", "status", "--json"),
        remedies={SPEED_STALLED: ("restart", "speed")},
    )
