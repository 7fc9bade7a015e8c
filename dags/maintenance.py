"""
Proves the platform sound and keeps it small, every night: verify -> erasures -> retention -> tidy
-> airflow.

**When.** Daily at 02:30 UTC, after `batch_layer`. `verify` comes first: what one has to look into is still there.

**When it is red.** Readers are not touched. What comes after a red task waits, so nothing is removed while a promise is
broken.

| red task | what to do |
|---|---|
| `verify` | `./tidemark verify --last` names the broken law and its rows; a breach is red at once, without retry |
| `erasures` | the log says what the speed application, or a mart, lacks; clear it when that is mended |
| `retention` | *up for reschedule* is no fault: a batch run is at work. Red: the log names the table; clear it |
| `tidy` | is the Thrift server up? `./tidemark status`; then clear it |
| `airflow` | the last lines are those of `airflow db clean`; clear it when its database answers |

Runbook: `docs/runbooks/maintenance.md`.
"""

from airflow.sdk import DAG, CronTriggerTimetable, chain
from tidemark_airflow.operators import TidemarkOperator, VerifyStep
from tidemark_airflow.policy import Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import MAINTENANCE

with DAG(
    MAINTENANCE,
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
    **dag_arguments(Owner.PLATFORM, [Tag.MAINTENANCE], __doc__, retries=2),
):
    chain(
        VerifyStep(task_id="verify"),
        TidemarkOperator(task_id="erasures", arguments=("erasures", "finish", "--if-ready")),
        TidemarkOperator(task_id="retention", arguments=("retention",)),
        TidemarkOperator(task_id="tidy", arguments=("maintain", "tidy")),
        TidemarkOperator(task_id="airflow", arguments=("maintain", "airflow")),
    )
