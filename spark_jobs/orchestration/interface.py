"""What Airflow's environment and the pipeline's environment agree on.

Airflow's tasks and pages -> this module <- the `tidemark` command. Standard library only: it is all of `spark_jobs`
that Airflow's environment imports.
"""

import re

# Exit codes of `tidemark` that mean more than "it failed"; all of them are in docs/runbooks/exit-codes.md.
CHECKS_FAILED = 3
SPEED_SILENT = 4
ALARM_RAISED = 5
NOTHING_TO_DO = 6
TRY_LATER = 75

# The DAGs.
BATCH_LAYER, SPEED_LAYER, MARTS, REPLAY = "batch_layer", "speed_layer", "marts", "replay"
DRILL = "drill"
MAINTENANCE, MAINTENANCE_HOURLY, MAINTENANCE_WEEKLY = "maintenance", "maintenance_hourly", "maintenance_weekly"

BATCH_STEPS = ("plan", "build", "audit", "publish")
"""Of a batch run: `tidemark batch STEP`, and a task of that name in each DAG whose runs publish."""

# What a task gives to the command.
COMMAND_VARIABLE = "TIDEMARK_COMMAND"
"""Names the executable, where it is not the launcher in the root of the clone."""
DAY = "%Y-%m-%d"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A run's id also names its folder in the Data Docs."""
DAG_RUN = re.compile(r"[\w.~:+-]{1,250}", re.ASCII)
"""What Airflow calls a run, if it is told to `tidemark`."""
PIN = re.compile(r"[a-z][a-z0-9_]{0,47}")

MERGED_INTO = "merged into run"
"""After these words `tidemark batch` names the run that has done the days of another, and what Airflow calls it."""
NOTHING_DIFFERS = "nothing differs"
"""How `tidemark replay compare` begins where nobody has to agree."""

EXERCISES = ("repeat", "reorder", "malform", "kill", "rebuild")
"""What a drill does to its slice: all of them, unless some are named."""

# Where Airflow's forms find the names of views and event types; by default this repository's.
VIEWS_FOLDER_VARIABLE, SCHEMAS_FOLDER_VARIABLE = "TIDEMARK_VIEWS_FOLDER", "TIDEMARK_SCHEMAS_FOLDER"

# When DAGs begin by themselves: five fields of cron, and the zone of their hours.
BATCH_SCHEDULE_VARIABLE, BATCH_SCHEDULE = "TIDEMARK_BATCH_SCHEDULE", "0 0 * * *"
REBUILD_SCHEDULE_VARIABLE, REBUILD_SCHEDULE = "TIDEMARK_REBUILD_SCHEDULE", "0 4 * * 0"
SCHEDULE_TIMEZONE_VARIABLE = "TIDEMARK_SCHEDULE_TIMEZONE"
TASK_HOURS_VARIABLE, TASK_HOURS = "TIDEMARK_TASK_HOURS", 24.0
"""How long a try of a task may take."""

# How Airflow tells people of alarms: connections of its own, and variables of its processes.
MAIL_CONNECTION, WEBHOOK_CONNECTION = "tidemark_mail", "tidemark_webhook"
MAIL_TO_VARIABLE, WEBHOOK_VARIABLE = "TIDEMARK_ALARMS_MAIL_TO", "TIDEMARK_ALARMS_WEBHOOK_FILE"
"""Empty where alarms are not told that way."""

# What the command writes below its home, and where Airflow serves it.
HOME = ".tidemark"
"""The home below the root of the clone, where TIDEMARK_HOME names no other."""
DATA_DOCS = "data_docs"
REPLAYS = "replays"
"""Below the Data Docs: a folder per replay, with its page."""
RUNS, SQL_PAGE = "runs", "views.html"
"""The same: a folder per batch run, with its page; beside them the SQL of the serving views."""
DRILLS = "drills"
"""Likewise, a folder per drill."""
DBT_DOCS = "dbt/docs"
PAGES = "/tidemark"
DATA_DOCS_PAGE, DBT_DOCS_PAGE = "docs", "models"
