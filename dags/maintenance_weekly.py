"""
Builds some views once more from all facts, every week, and holds them to what is published.

**When.** Sundays at 04:00 UTC, at the published cut: plan -> build -> audit -> publish. A fourth of the views, those
first whose last full build is longest ago, so each has its turn within four weeks. The others keep their published
source. The settings `rebuild_schedule`, `rebuild_views`, `rebuild_parts` and `rebuild_from` say all of it otherwise.

**When it is red.** Readers keep the last publication.

| red task | what to do |
|---|---|
| `plan` | *up for reschedule*, *skipped*: no faults (a run at work, nothing built). Red: run `batch_layer` first |
| `build` | clear it: it resumes at the same cut |
| `audit` | a view differs from what daily runs built: *Details -> Data Docs*, `./tidemark agreement`, the runbook |
| `publish` | a daily run has published meanwhile: trigger a new run |

Runbook: `docs/runbooks/maintenance.md`.
"""

from airflow.sdk import DAG, chain
from tidemark_airflow import schedules
from tidemark_airflow.operators import AuditStep, BatchStep, PublishStep
from tidemark_airflow.policy import PUBLISHING_POOL, Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import MAINTENANCE_WEEKLY

with DAG(
    MAINTENANCE_WEEKLY,
    schedule=schedules.of_rebuild(),
    **dag_arguments(Owner.PLATFORM, [Tag.MAINTENANCE, Tag.PUBLISHES], __doc__, retries=2),
):
    chain(
        BatchStep(task_id="plan", step="plan", options=("--rebuild",)),
        BatchStep(task_id="build", step="build"),
        AuditStep(task_id="audit", step="audit"),
        PublishStep(task_id="publish", pool=PUBLISHING_POOL),
    )
