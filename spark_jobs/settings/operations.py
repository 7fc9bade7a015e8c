"""What runs by itself, when it tells people, and how long things are kept."""

from typing import Literal
from zoneinfo import available_timezones

from pydantic import BaseModel, Field, field_validator, model_validator

from spark_jobs.orchestration import interface
from spark_jobs.settings.kinds import Count, File, Natural, Share, Time


class Operations(BaseModel):
    """Alarms, retention, verification, schedules, replays."""

    lag_alarm_seconds: Time = Field(300, description="Alarm when a record has been in Kafka for so long, unread.")
    retention_alarm_share: Share = Field(0.8, description="Alarm when its age is this share of Kafka's retention.")
    freshness_alarm_seconds: Time = Field(120, description="Alarm when records wait and the newest answer is this old.")
    quarantine_alarm_share: Share = Field(0.1, description="Alarm when this share of a topic's records is rejected.")
    disk_alarm_share: Share = Field(0.05, description="Alarm when less than this share of `home`'s disk is free.")
    alarms_mail_to: str | None = Field(None, description="Whom Airflow mails alarms to; several with commas between.")
    alarms_mail_from: str | None = Field(None, description="The sender of these mails; the first receiver by default.")
    alarms_smtp: str | None = Field(
        None, description="The mail server, smtp://user@host:587 (STARTTLS) or smtps://user@host:465."
    )
    alarms_smtp_password_file: File | None = Field(None, description="File with the password for `alarms_smtp`.")
    alarms_webhook_file: File | None = Field(
        None, description="File with the URL to which Airflow posts alarms as JSON; such a URL is often a secret."
    )

    publications_kept_days: Natural = Field(30, description="How long a publication can be rolled back to or pinned.")
    served_sample_seconds: Time = Field(
        4.0, description="How long a publication compares the Thrift server's answers with those of the files."
    )
    history_days: Natural = Field(
        3650, description="Longest age of a pin (what Delta lets readers of `batch.*` travel back), and of a decision."
    )
    verify_records: Count = Field(
        200_000, description="A log of more records is verified by a sample, unless `--all`; about as many are in it."
    )
    verify_keys: Count = Field(500, description="Keys of a view that a sample looks at, about.")
    verify_seconds: float = Field(45.0, gt=0, description="When a sample ends, whatever is not looked at by then.")
    batch_schedule: str = Field(
        interface.BATCH_SCHEDULE,
        description="When `batch_layer` begins by itself: five fields of cron, as `0 * * * *` for every hour.",
    )
    rebuild_schedule: str = Field(
        interface.REBUILD_SCHEDULE, description="When `maintenance_weekly` builds views once more."
    )
    schedule_timezone: str = Field("UTC", description="The zone of the hours of schedules, as Europe/Vienna.")
    rebuild_views: str | None = Field(
        None, description="The views that are built once more by that schedule, with commas between; all by default."
    )
    rebuild_parts: int = Field(
        4, ge=1, description="It builds one of so many parts of them, those first whose last full build is oldest."
    )
    rebuild_from: Literal["facts", "raw"] = Field(
        "facts", description="What it builds them from; raw: all raw records are decoded once more before."
    )
    decode_again_records: int = Field(
        10_000_000,
        ge=1,
        description="Older records that a run decodes again at a time; where it is resumed, such portions stay done.",
    )
    replay_hours: str | None = Field(
        None,
        pattern=r"^([01]?\d|2[0-3])-([01]?\d|2[0-3])$",
        description="UTC hours in which replays may begin, as 22-6; default: always.",
    )
    replay_cores: int | None = Field(
        None,
        ge=1,
        description="Spark cores that a replay takes at most (of a standalone cluster: spark.cores.max); default: all.",
    )
    task_hours: float = Field(
        interface.TASK_HOURS, gt=0, description="How long a try of a task of Airflow may take; then it is stopped."
    )
    run_alarm_hours: Time = Field(6, description="Alarm when a batch run is still at work so long after it began.")
    run_missing_alarm_hours: Time = Field(
        30, description="Alarm when no batch run has begun for so long; more where batch_schedule is rarer than daily."
    )
    airflow_kept_days: Natural = Field(30, description="How long Airflow's database and task logs keep a run.")
    batch_stale_minutes: Count = Field(60, description="A batch run without progress for this long may be superseded.")

    @field_validator("batch_schedule", "rebuild_schedule")
    @classmethod
    def _cron(cls, text: str) -> str:
        """Airflow, which runs it, knows more of cron."""
        if len(text.split()) != 5:
            raise ValueError(f"{text!r} is no cron text of five fields, such as {interface.BATCH_SCHEDULE!r}")
        return text

    @field_validator("schedule_timezone")
    @classmethod
    def _zone(cls, name: str) -> str:
        """A machine may have no data of zones: then Airflow, which has its own, is the first to judge."""
        if name != "UTC" and (zones := available_timezones()) and name not in zones:
            raise ValueError(f"{name!r} is no time zone, such as Europe/Vienna")
        return name

    @model_validator(mode="after")
    def _mailed(self) -> "Operations":
        if self.alarms_mail_to and not self.alarms_smtp:
            raise ValueError("TIDEMARK_ALARMS_MAIL_TO names whom to mail, and TIDEMARK_ALARMS_SMTP no server to do it")
        return self
