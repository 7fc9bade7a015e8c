"""What Airflow's environment and the pipeline's environment agree on.

Airflow's tasks and pages -> this module <- the `tidemark` command. Standard library only: it is all of `spark_jobs`
that Airflow's environment imports.
"""

import re

# Exit codes of `tidemark` that mean more than "it failed"; all of them are in docs/runbooks/exit-codes.md.
AUDIT_FAILED = 3
SPEED_SILENT = 4
ALARM_RAISED = 5
TRY_LATER = 75

# The DAGs.
BATCH_LAYER, SPEED_LAYER, MARTS, REPLAY = "batch_layer", "speed_layer", "marts", "replay"
DRILL = "drill"
MAINTENANCE, MAINTENANCE_HOURLY, MAINTENANCE_WEEKLY = "maintenance", "maintenance_hourly", "maintenance_weekly"

# What a task gives to the command.
COMMAND_VARIABLE = "TIDEMARK_COMMAND"
"""Names the executable, where it is not the launcher in the root of the clone."""
DAY = "%Y-%m-%d"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A run's id also names its folder in the Data Docs."""
PIN = re.compile(r"[a-z][a-z0-9_]{0,47}")

NOTHING_DIFFERS = "nothing differs"
"""How `tidemark replay compare` begins where nobody has to agree."""

EXERCISES = ("repeat", "reorder", "malform", "kill", "rebuild")
"""What a drill does to its slice: all of them, unless some are named."""

# Where Airflow's forms find the names of views and event types; by default this repository's.
VIEWS_FOLDER_VARIABLE, SCHEMAS_FOLDER_VARIABLE = "TIDEMARK_VIEWS_FOLDER", "TIDEMARK_SCHEMAS_FOLDER"

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
DRILLS = "drills"
"""Likewise, a folder per drill."""
DBT_DOCS = "dbt/docs"
PAGES = "/tidemark"
DATA_DOCS_PAGE, DBT_DOCS_PAGE = "docs", "models"
