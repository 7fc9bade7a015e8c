"""
Keeps the speed layer and the tables for SQL readers small and current, every hour: trim, mirror.

**When.** At a quarter past each hour, without a JVM. The speed application compacts as it goes, and needs no hour.

**When it is red.** Nothing is lost or wrong; old partials stay longer, or `ops.*` lags behind the ledger.

| red task | what to do |
|---|---|
| `trim` | the log says why the ledger cannot be written; `./tidemark status`, then clear it |
| `mirror` | is the Thrift server up? `./tidemark status`, `./tidemark logs thrift`; then clear it |

Runbook: `docs/runbooks/maintenance.md`.
"""

from airflow.sdk import DAG, CronTriggerTimetable, chain
from tidemark_airflow.operators import TidemarkOperator
from tidemark_airflow.policy import Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import MAINTENANCE_HOURLY

with DAG(
    MAINTENANCE_HOURLY,
    schedule=CronTriggerTimetable("15 * * * *", timezone="UTC"),
    **dag_arguments(Owner.PLATFORM, [Tag.MAINTENANCE], __doc__, retries=2),
):
    chain(
        TidemarkOperator(task_id="trim", arguments=("maintain", "trim")),
        TidemarkOperator(task_id="mirror", arguments=("maintain", "mirror")),
    )
