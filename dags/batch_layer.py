"""
Rebuilds the batch layer and publishes it, then trains the models: plan -> build -> audit -> publish -> train.

**When.** Daily at 00:00 UTC, for the day that has just ended (the partition key); the setting `batch_schedule` says
otherwise. By hand: *Trigger*, without a key for everything new up to the cut, or with a key `YYYY-MM-DD` to rebuild
that day. Past days: *Trigger -> Backfill*.

Whatever started a run, the cut is chosen by `plan` and kept in the ledger; retries reuse it. Runs that wait for another
are **merged** into the one that begins next: its build is theirs, their `plan` is skipped with a link to it, and they
are green once it is published.

**When it is red.** Readers keep the last publication; the speed layer goes on and answers stay exact.

| red task | what to do |
|---|---|
| `plan` | read its last lines; *up for reschedule* is no fault: another run is at work, or builds this one's day |
| `build` | clear it: it resumes at the same cut. Red again: `./tidemark batch status` and the log |
| `audit` | *Details -> Data Docs* shows what failed, with rows. Mend the suite and clear it, or trigger a new run |
| `publish` | clear it: an unfinished publication is rolled forward |
| `train` | the publication stands, the old model scores on. Clear it: an unfinished promotion is sent first |

Runbook: `docs/runbooks/backfill.md`.
"""

from airflow.sdk import DAG, chain
from tidemark_airflow import schedules
from tidemark_airflow.operators import AuditStep, BatchStep, PlanStep, PublishStep, TrainStep
from tidemark_airflow.policy import PUBLISHING_POOL, Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import BATCH_LAYER

MERGED_AT_ONCE = 32  # those that wait are merged, so they must be able to wait
SCHEDULE = schedules.of_batch_layer()

with DAG(
    BATCH_LAYER,
    schedule=SCHEDULE,
    **dag_arguments(Owner.PLATFORM, [Tag.BATCH, Tag.PUBLISHES], __doc__, retries=2, runs_at_once=MERGED_AT_ONCE),
):
    chain(
        PlanStep(task_id="plan", forces_scheduled_day=schedules.is_at_most_daily(SCHEDULE)),
        BatchStep(task_id="build", step="build"),
        AuditStep(task_id="audit", step="audit"),
        PublishStep(task_id="publish", pool=PUBLISHING_POOL),
        TrainStep(task_id="train"),
    )
