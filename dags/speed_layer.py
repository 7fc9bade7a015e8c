"""
Looks every five minutes which alarms ring, tells people, and restarts the speed layer when it stands still.

**When.** Every five minutes; one look at Kafka, the log's end, the ledger and the disk (`tidemark alarms`), no JVM. A
process that ends is started again at once, by the supervisor.

**When it is red.** An alarm rings that nobody has acknowledged; the log names it. People are told once when it is
raised and once when it is cleared, where a mail server or a webhook is set (`docs/observability.md`).

| alarm | what to do |
|---|---|
| `heartbeat` (silent), `stall` | the run has asked for a restart. If the next one is red too: `./tidemark logs speed` |
| `heartbeat` (stopped, with its error) | the supervisor starts it again; the error names the cause |
| `retention` | records will leave Kafka before they are read: raise the topics' retention now |
| any other | `docs/runbooks/alarms.md`, a section for each; `./tidemark alarms ack ID` says that you see to it |
"""

from airflow.sdk import DAG, CronTriggerTimetable
from tidemark_airflow.notify import AlarmNotifier
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
        arguments=("alarms", "--json"),
        remedies={SPEED_SILENT: ("restart", "speed")},
        on_failure_callback=AlarmNotifier(),
        on_success_callback=AlarmNotifier(),
    )
