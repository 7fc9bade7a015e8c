"""
A game day: disturbs and kills a shadow platform that is fed with a slice of the log, and proves that what it serves is
what the records give.

**When.** By hand: *Trigger*, a form; before an upgrade, after a change of settings, for practice. As the form opens,
nothing live is touched: the shadow platform has a Kafka, a warehouse and a ledger of its own in the home's folder
`drill`, and is gone in the end. It takes up to 4 GB of memory and some minutes; live parts go first. *Kill the live
speed application too* kills that once, by SIGKILL: readers get no news until it is back.

**When it is red.** Readers are not touched. *Details -> Data Docs* leads to the page with the figures; the last lines
of the log say the same.

| red task | what to do |
|---|---|
| `drill`: rows differ, a law does not hold | the page names view and rows; the same lsns and seed repeat it |
| `drill`: it did not come to its end | the page names the step and its last lines; trigger it again |
| `drill`: refused | want of memory, or another drill is at work: trigger it at another time |

Runbook: `docs/runbooks/drill.md`.
"""

from datetime import timedelta

from airflow.sdk import DAG
from tidemark_airflow.drill_form import DRILL_PARAMS, DrillStep
from tidemark_airflow.policy import Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import DRILL

with DAG(
    DRILL,
    schedule=None,
    params=DRILL_PARAMS,
    **dag_arguments(Owner.PLATFORM, [Tag.SPEED, Tag.BATCH], __doc__, retries=0),
):
    DrillStep(task_id="drill", execution_timeout=timedelta(hours=2))
