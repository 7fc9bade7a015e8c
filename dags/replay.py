"""
Does a part of history again, from raw bytes or from facts: preview -> plan -> build -> audit -> compare -> agree ->
answer -> publish.

**When.** By hand: *Trigger*, a form. It begins as a **dry run**, which ends after `preview`: what would be decoded and
built, which marts read it, about how much work it is. Without a dry run it goes on to `agree`, where *Required actions*
shows what readers would see otherwise; nobody sees anything of it before somebody approves. Where nothing differs,
nobody is asked. From the shell: `./tidemark replay --help`.

**When it is red.** Readers keep the last publication.

| red task | what to do |
|---|---|
| `preview` | its last line names what is wrong in the form: trigger it again |
| `plan` | *up for reschedule* is no fault: another run is at work, or `replay_hours` has not come |
| `build` | clear it: it resumes at the same cut |
| `audit` | *Details -> Data Docs* shows what failed, with rows |
| `compare` | clear it. *Details -> Data Docs* of a green one leads to all rows that differ |
| `agree` | clear it: it asks again. A rejected replay is cancelled, and `publish` skipped |
| `answer` | its log says why: another run has superseded the replay meanwhile, or it is cancelled |
| `publish` | clear it: an unfinished publication is rolled forward |

Runbook: `docs/runbooks/replay.md`.
"""

from airflow.sdk import DAG, chain
from tidemark_airflow.operators import AuditStep, BatchStep, PublishStep
from tidemark_airflow.policy import PUBLISHING_POOL, REPLAY_POOL, Owner, Tag, dag_arguments
from tidemark_airflow.replay_form import PARAMS
from tidemark_airflow.replay_steps import Agreement, AnswerStep, CompareStep, PreviewStep, ReplayPlanStep

from spark_jobs.orchestration.interface import REPLAY

with DAG(
    REPLAY,
    schedule=None,
    params=PARAMS,
    **dag_arguments(Owner.PLATFORM, [Tag.BATCH, Tag.PUBLISHES], __doc__, retries=2),
):
    chain(
        PreviewStep(task_id="preview"),
        ReplayPlanStep(task_id="plan"),
        BatchStep(task_id="build", step="build", pool=REPLAY_POOL),
        AuditStep(task_id="audit", step="audit", pool=REPLAY_POOL),
        CompareStep(task_id="compare", pool=REPLAY_POOL),
        Agreement(task_id="agree"),
        AnswerStep(task_id="answer"),
        PublishStep(task_id="publish", pool=PUBLISHING_POOL),
    )
