"""What a run takes out of quarantine is not lost with the run."""

from pathlib import Path

from spark_jobs.batch import decode_step
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Run


def test_a_run_after_one_that_died_takes_back_what_that_one_had_found(platform_home: Path) -> None:
    """I13: the dead run may have emptied quarantine, and written no facts yet."""
    store = ledger.open()
    dead = store.begin_run(Run(run_id="dead", previous_cut=9, cut=12))
    store.progress(dead.run_id, "plan", decoded_again=[[2, 3], [7, 7]])
    store.fail_run(dead.run_id, "killed")
    after = store.begin_run(Run(run_id="after", previous_cut=9, cut=13))
    assert decode_step._again(store, after, EVERY_SCHEMA, print) == [(2, 3), (7, 7)]
    retried = store.run("after")
    assert retried is not None and retried.summary["decoded_again"] == [[2, 3], [7, 7]]
    assert decode_step._again(store, retried, EVERY_SCHEMA, print) == [(2, 3), (7, 7)]
