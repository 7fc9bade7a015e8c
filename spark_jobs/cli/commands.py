"""The table of commands: where each is, and its line in `tidemark --help`, by what it is about."""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """A command that is imported when it is called."""

    target: str
    """module:name, without `spark_jobs.`"""
    line: str
    """What it is for, at most 60 characters."""


Section = Mapping[str, Entry]

SECTIONS: dict[str, Section] = {
    "Begin": {
        "init": Entry("cli.project:init", "Write a small project of your own to a folder"),
        "demo": Entry("cli.demo:demo", "Start everything, feed it, show answers, verify"),
    },
    "The platform": {
        "up": Entry("cli.platform:up", "Start it, or parts of it, and wait until it answers"),
        "down": Entry("cli.platform:down", "Stop it; its state stays"),
        "status": Entry("cli.platform:status", "Each part; exit code 1 unless all answer"),
        "alarms": Entry("cli.alarms:alarms", "What rings now, with its runbook"),
        "logs": Entry("cli.platform:logs", "The end of a part's log"),
        "restart": Entry("cli.platform:restart", "Stop and start one part"),
        "reset": Entry("cli.platform:reset", "Stop it and delete its state"),
        "settings": Entry("cli.platform:show_settings", "Every setting: variable, value, meaning"),
    },
    "Events": {
        "topics": Entry("cli.kafka:topics_", "Create Kafka's topics"),
        "send": Entry("cli.kafka:send", "Send records by hand, a line each"),
        "schemas": Entry("cli.kafka:schemas", "Every schema, and from which lsn it is in force"),
    },
    "Layers": {
        "speed": Entry("cli.speed:speed", "The speed layer: heartbeat, lag, times"),
        "batch": Entry("cli.batch:batch", "The batch layer: plan, build, audit, publish, roll back"),
        "model": Entry("cli.model:model", "Models: train, evaluate, promote"),
        "dbt": Entry("cli.dbt:dbt", "The marts: dbt over a pin"),
        "retention": Entry("cli.maintain:retention", "Expire publications, remove files that nobody needs"),
        "maintain": Entry("cli.maintain:maintain", "What the maintenance DAGs do"),
    },
    "Answers": {
        "sql": Entry("cli.sql:sql", "Ask one statement; --engine spark for all of Spark SQL"),
        "views": Entry("cli.view:views", "Every view, and what it is served from"),
        "view": Entry("cli.view:view", "One view: show, compare, promote, roll back, retire"),
        "explain": Entry("cli.serving:explain_", "Where a row comes from, down to the raw records"),
        "pin": Entry("cli.pin:pin", "Schemas that answer as the platform did at one moment"),
        "query-server": Entry("cli.query_server:query_server", "Run the read server; `up` does so"),
        "users": Entry("cli.query_server:users", "Who may ask the read server"),
    },
    "History done again": {
        "replay": Entry("cli.replay:replay", "Preview, run, compare, approve, publish"),
        "quarantine": Entry("cli.quarantine:quarantine", "Records that no schema accepts: show, readmit, discard"),
        "retract": Entry("cli.corrections:retract", "Take a fact back"),
        "supersede": Entry("cli.corrections:supersede", "Have a fact read as another event"),
        "restore": Entry("cli.corrections:restore", "Take back a retraction or a corrected event"),
        "revisions": Entry("cli.corrections:revisions", "What was said afterwards of single records"),
        "erase": Entry("cli.erasure:erase", "Forget a person: every record, and what was made of it"),
        "erasures": Entry("cli.erasure:erasures", "Who was forgotten, by whom, and how far it is"),
    },
    "Promises": {
        "agreement": Entry("cli.quality:agreement", "Where batch and speed differed at the last audit"),
        "verify": Entry("cli.quality:verify", "Look whether the platform keeps its promises"),
        "drill": Entry("cli.drill:drill", "Disturb and kill a shadow platform, prove what it serves"),
    },
}
OF_THE_TOWN: dict[str, Section] = {
    "The sample town": {
        "generate": Entry("sample.commands:generate", "Play the town: a market, a shop, buses, a ski resort"),
        "import": Entry("sample.commands:import_", "Send real data as events"),
    },
}
