"""One run of Flink, in Flink's own environment: `.venv-flink/bin/python job.py PLAN-FILE`.

plan (JSON: settings, tables, inserts, answers) -> an embedded cluster -> when the job began and ended, and its answers
"""

import json
import sys
import time
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment


def run(settings: EnvironmentSettings, tables: list[str], inserts: list[str]) -> dict[str, float]:
    """All inserts as one job, until it has ended; seconds since the epoch."""
    environment = TableEnvironment.create(settings)
    for statement in tables:
        environment.execute_sql(statement)
    together = environment.create_statement_set()
    for statement in inserts:
        together.add_insert_sql(statement)
    began_at = time.time()
    together.execute().wait()
    return {"began_at": began_at, "ended_at": time.time()}


def main(plan_file: str) -> None:
    plan = json.loads(Path(plan_file).read_text())
    configuration = Configuration()
    for name, value in plan["settings"].items():
        configuration.set_string(name, value)
    streaming = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    spent = run(streaming, plan["tables"], plan["inserts"])
    if plan["answers"]:
        batch = EnvironmentSettings.new_instance().in_batch_mode().build()
        run(batch, plan["answer_tables"], plan["answers"])
    Path(plan["span"]).write_text(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
