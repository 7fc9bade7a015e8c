"""
Rebuilds the batch layer and publishes it, then trains the models: plan -> build -> audit -> publish -> train.

**When.** Daily at 00:00 UTC, for the day that has just ended (the partition key). By hand: *Trigger*, without a key for
everything new up to the cut, or with a key `YYYY-MM-DD` to rebuild that day. Past days: *Trigger -> Backfill*.
Whatever started a run, the cut is chosen by `plan` and kept in the ledger; retries reuse it.

**When it is red.** Readers keep the last publication; the speed layer goes on and answers stay exact.

| red task | what to do |
|---|---|
| `plan` | read its last lines; *up for reschedule* is no fault: another run is at work |
| `build` | clear it: it resumes at the same cut. Red again: `./tidemark batch status` and the log |
| `audit` | *Details -> Data Docs* shows what failed, with rows. Mend the suite and clear it, or trigger a new run |
| `publish` | clear it: an unfinished publication is rolled forward |
| `train` | the publication stands, the old model scores on. Clear it: an unfinished promotion is sent first |

Runbook: `docs/runbooks/backfill.md`.
"""

from datetime import timedelta

from airflow.sdk import DAG, CronPartitionTimetable, chain
from tidemark_airflow.operators import AuditStep, BatchStep, PublishStep, TrainStep
from tidemark_airflow.policy import PUBLISHING_POOL, Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import BATCH_LAYER, DAY

# A platform that is started for the first time at one in the morning has nothing to build for the day before.
EVERY_DAY = CronPartitionTimetable(
    "0 0 * * *", timezone="UTC", run_offset=-1, key_format=DAY, run_immediately=timedelta(0)
)

with DAG(
    BATCH_LAYER,
    schedule=EVERY_DAY,
    **dag_arguments(Owner.PLATFORM, [Tag.BATCH, Tag.PUBLISHES], __doc__, retries=2),
):
    chain(
        BatchStep(task_id="plan", step="plan"),
        BatchStep(task_id="build", step="build"),
        AuditStep(task_id="audit", step="audit"),
        PublishStep(task_id="publish", pool=PUBLISHING_POOL),
        TrainStep(task_id="train"),
    )
