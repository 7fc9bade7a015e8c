"""
Builds the dbt marts over a pin of the newest publication: pin -> build -> docs. The pin has what is built and audited,
and nothing that came since: so marts are exact, and wait for no merge.

**When.** After each publication (the asset `publication`; the partition key is the run that published). By hand:
*Trigger*, without a key.

**When it is red.** The marts that depend on what failed keep the rows of the last run, the others have new ones;
`serving.*` is not touched. A failed test is not tried again: the pin would fail it again.

| red task | what to do |
|---|---|
| `pin` | is the Thrift server up? `./tidemark status`, `./tidemark logs thrift` |
| `build` | the log names the model or the test; `./tidemark dbt build --select <model>+` repeats that part by hand |
| `docs` | only the documentation is old; clear the task |
"""

from airflow.sdk import DAG, PartitionedAssetTimetable, chain
from tidemark_airflow.operators import PinnedStep
from tidemark_airflow.policy import PUBLICATION, Owner, Tag, dag_arguments

from spark_jobs.orchestration.interface import MARTS

with DAG(
    MARTS,
    schedule=PartitionedAssetTimetable(assets=PUBLICATION),
    **dag_arguments(Owner.ANALYTICS, [Tag.MODELS], __doc__, retries=2),
):
    chain(
        PinnedStep(task_id="pin", arguments=("pin", "create", "--published", "--days", "7")),
        PinnedStep(task_id="build", arguments=("dbt", "build", "--pin")),
        PinnedStep(task_id="docs", arguments=("dbt", "docs", "--pin")),
    )
