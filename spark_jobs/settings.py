"""Every setting of Tidemark, with its default; beside it only `storage/java` reads the environment.

environment (`TIDEMARK_*`) -> Settings -> everyone. See them all: `tidemark settings`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, computed_field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.orchestration import interface

ROOT = Path(__file__).resolve().parent.parent

LAYOUT = {"views": "views", "schemas": "schemas/events", "quality": "schemas/quality", "models": "models", "dbt": "dbt"}
"""The folders of a project's definitions, unless a setting says otherwise."""
TOWN_LAYOUT = {**LAYOUT, "views": "spark_jobs/views", "models": "spark_jobs/models"}
"""The same of this repository, whose project is the sample town."""
TOWN_ORACLE = "spark_jobs.sample.oracle.answers:oracle"
EVERY_ADDRESS = ("0.0.0.0", "::", "")
FOLDERS = tuple(f"{name}_folder" for name in LAYOUT)

Port = Annotated[int, Field(ge=1, le=65535)]
Share = Annotated[float, Field(ge=0, le=1)]
Natural = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Time = Annotated[float, Field(ge=0)]
File = Annotated[Path, AfterValidator(lambda file: file.expanduser().absolute())]
"""A file that a setting names; processes with other working folders mean the same one, and a link stays a link."""


class NoPassword(RuntimeError):
    """Nobody has made or named the password of a door; the text says what to do."""


class _Below:
    """A path in `home`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, settings: "Settings", owner: object) -> Path:
        return settings.home / self._name


class _Folders:
    """What lies in `home`."""

    checkpoints = _Below("checkpoints")
    run_dir = _Below("run")
    log_dir = _Below("logs")
    tmp_dir = _Below("tmp")  # scratch of Spark, Hive and Derby; may be emptied while nothing runs
    metastore_dir = _Below("metastore")  # Derby's files; they belong to the metastore's process
    kafka_dir = _Below("kafka")
    airflow_dir = _Below("airflow")  # AIRFLOW_HOME: configuration, database and task logs
    producer_ledger = _Below("producer")  # Parquet files of what the demo's producers sent: the oracle's source
    data_docs = _Below(interface.DATA_DOCS)
    dbt_dir = _Below("dbt")
    dbt_docs = _Below(interface.DBT_DOCS)
    expectations = _Below("expectations")  # this installation's own: a file here stands in for `quality_folder`'s
    own_metastore_token = _Below("run/metastore.token")  # Hadoop's file with the token that our metastore wants
    metastore_login = _Below("run/metastore.login")  # the same as JSON: user, password
    shadow_home = _Below("drill")  # the home of a drill's shadow platform; gone when the drill has ended
    query_users = _Below("query-users.json")  # who else may ask the read server, mode 0600; see `tidemark users`
    secrets_file = _Below("secrets.json")  # JSON object of generated passwords, mode 0600


class Settings(_Folders, BaseSettings):
    """Durations are in the unit that the name ends in; parts listen on `host`, and are reached by `advertised_host`.

    A variable that is empty counts as one that is not set.
    """

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", frozen=True, env_ignore_empty=True, allow_inf_nan=False)

    profile: Literal["embedded", "cluster"] = Field(
        "embedded", description="embedded: everything on this machine under `home`; cluster: the parts run elsewhere."
    )
    home: Path = Field(
        ROOT / interface.HOME, description="State folder: warehouse, checkpoints, ledger, logs, secrets. In `project`."
    )
    host: str = Field("127.0.0.1", description="The address that every part binds to.")
    advertised_host: str | None = Field(None, description="The name by which others reach the parts. Default: `host`.")
    supervisor: Literal["supervisord", "compose"] = Field(
        "supervisord", description="Who starts the parts and keeps their logs; compose: an engine of containers."
    )

    project: Path = Field(ROOT, description="The project's folder: its views, event schemas, quality, models, dbt.")
    views_folder: Path = Field(ROOT / TOWN_LAYOUT["views"], description="The view files, one view each.")
    schemas_folder: Path = Field(ROOT / TOWN_LAYOUT["schemas"], description="The event types' JSON Schemas.")
    quality_folder: Path = Field(ROOT / TOWN_LAYOUT["quality"], description="The project's own expectations.")
    models_folder: Path = Field(ROOT / TOWN_LAYOUT["models"], description="The model files, one model each.")
    dbt_folder: Path = Field(ROOT / TOWN_LAYOUT["dbt"], description="The dbt project of the marts.")

    oracle: str | None = Field(
        None, description="module:attribute of the project's own answers, to which `verify` holds the served ones."
    )

    kafka_port: Port = Field(19092, description="Kafka broker.")
    kafka_controller_port: Port = Field(19093, description="Kafka's KRaft controller.")
    metastore_port: Port = Field(19083, description="Hive metastore.")
    thrift_port: Port = Field(19000, description="Spark Thrift Server (JDBC, PyHive, BI tools).")
    query_port: Port = Field(19080, description="The read server: SQL and keys over HTTP.")
    query_flight_port: Port = Field(19081, description="The read server: Arrow Flight SQL (ADBC, JDBC).")
    metrics_port: Port = Field(19464, description="Metrics of the speed application, as text for Prometheus.")
    airflow_port: Port = Field(18080, description="Airflow's web UI and REST API.")

    kafka_servers: str | None = Field(None, description="Bootstrap servers of a Kafka elsewhere.")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How every client speaks to Kafka; the embedded broker does PLAINTEXT, SASL_PLAINTEXT."
    )
    kafka_sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = Field(
        "SCRAM-SHA-512", description="How a SASL protocol proves the password."
    )
    kafka_user: str = Field("tidemark", description="Who logs in at Kafka, where the protocol is a SASL one.")
    kafka_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    kafka_ca_file: File | None = Field(None, description="PEM: whose brokers' certificates are trusted (SSL).")
    kafka_certificate_file: File | None = Field(None, description="PEM: the client's certificate, if brokers ask.")
    kafka_key_file: File | None = Field(None, description="PEM: the key of that certificate, not encrypted.")
    kafka_allow_plaintext: bool = Field(False, description="Let profile `cluster` use PLAINTEXT.")
    kafka_outside: str | None = Field(
        None, description="host:port by which clients of another network reach the broker: a listener of its own."
    )
    metastore_uri: str | None = Field(None, description="thrift://host:port of a metastore elsewhere.")
    metastore_token_file: File | None = Field(
        None, description="Hadoop file with the token that a metastore elsewhere wants; none: it wants no login."
    )
    stale_read_ms: Natural = Field(
        0, description="How old a Delta snapshot a Thrift query may read, to save the look for a newer one."
    )
    thrift_host: str | None = Field(None, description="Host of a Thrift server elsewhere.")
    thrift_user: str = Field("tidemark", description="Who logs in at the Thrift server.")
    thrift_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    query_host: str | None = Field(None, description="Host of a read server elsewhere.")
    query_user: str = Field("tidemark", description="Who logs in at the read server.")
    query_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    query_certificate_file: File | None = Field(None, description="PEM: the read server's certificate; it speaks TLS.")
    query_key_file: File | None = Field(None, description="PEM: the key of that certificate, not encrypted.")
    query_ca_file: File | None = Field(None, description="PEM: whose certificate of a read server is trusted (TLS).")
    query_statements: int = Field(2, ge=1, description="Statements at once at the read server; others wait.")
    query_seconds: float = Field(60, gt=0, description="How long a statement of the read server may take.")
    query_rows: int = Field(1_000_000, ge=1, description="Rows that an answer of the read server has at most.")
    query_answer_mb: int = Field(256, ge=1, description="Size of an answer of the read server at most.")
    query_memory_mb: int = Field(512, ge=64, description="Memory that a statement of the read server may take.")
    airflow_host: str | None = Field(None, description="Host of an Airflow elsewhere.")
    airflow_public_url: str | None = Field(None, description="Airflow as browsers reach it, where they come by proxy.")
    warehouse_uri: str | None = Field(None, description="Warehouse folder elsewhere (HDFS, object store).")
    ledger_url: str | None = Field(None, description="SQLAlchemy URL of the ledger; SQLite in `home` by default.")
    ledger_password_file: File | None = Field(None, description="File with the password for `ledger_url`.")
    otlp_endpoint: str | None = Field(None, description="URL of an OpenTelemetry collector that is sent the metrics.")
    airflow_database_url: str | None = Field(
        None, description="PostgreSQL URL of Airflow's database (password: PGPASSFILE); SQLite in `home` by default."
    )

    cores: Count = Field(2, description="Spark cores (local) and shuffle partitions of each job.")
    speed_memory_mb: Count = Field(1536, description="Heap of the speed application.")
    thrift_memory_mb: Count = Field(2048, description="Heap of the Thrift server.")
    batch_memory_mb: Count = Field(2048, description="Heap of a batch job.")
    task_memory_mb: Count = Field(224, description="Memory of a batch task's engine; what exceeds it goes to disk.")
    server_java_options: str = Field(
        "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
        " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000",
        description="JVM options of the speed application and the Thrift server; the default has the optimising"
        " compiler spend its time only on what stays hot.",
    )
    batch_java_options: str = Field(
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC",
        description="JVM options of a batch job; the default spares short jobs the optimising compiler.",
    )
    metastore_memory_mb: Count = Field(384, description="Heap of the embedded metastore.")
    kafka_memory_mb: Count = Field(512, description="Heap of the embedded broker.")

    topic_partitions: Count = Field(3, description="Partitions of a topic when it is created.")
    topic_retention_hours: Count = Field(168, description="Kafka's retention of topics that are not compacted.")

    max_records_per_batch: Count = Field(500_000, description="Kafka records that one micro-batch takes at most.")
    in_process_records: Natural = Field(
        20_000, description="Micro-batches up to this size stay in the driver's process."
    )
    in_process_mb: Natural = Field(64, description="So do at most so many bytes; larger ones go to the workers.")
    trigger_ms: Natural = Field(0, description="Least time between two micro-batches' starts; 0 = none.")
    span_seconds: Count = Field(120, description="Length of a span: speed partials of one span share files.")
    id_window_seconds: Count = Field(3600, description="How far back the speed layer knows event ids (duplicates).")
    id_window_max_ids: Count = Field(5_000_000, description="Most ids that the window holds; older ones leave first.")
    horizon_days: Natural = Field(7, description="Rows of sequence views older than this enter with the next build.")
    stretch_max_rows: Count = Field(
        100_000, description="A key with more rows in a stretch is served as of the last build (sequence views)."
    )
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
    heartbeat_seconds: float = Field(1.0, gt=0, description="How often the speed application writes its heartbeat.")

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

    @model_validator(mode="before")
    @classmethod
    def _laid_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Folders that are not set lie in the project's."""
        project = Path(given.get("project", ROOT)).expanduser().resolve()
        layout = TOWN_LAYOUT if project == ROOT else LAYOUT
        folders = dict(zip(FOLDERS, (project / place for place in layout.values()), strict=True))
        return {"home": project / ".tidemark", "oracle": TOWN_ORACLE if project == ROOT else None} | folders | given

    @field_validator("home", "project", *FOLDERS)
    @classmethod
    def _absolute(cls, folder: Path) -> Path:
        """Processes with other working folders must mean the same place."""
        return folder.expanduser().resolve()

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
    def _apart(self) -> "Settings":
        """`tidemark reset` removes folders of the home, whose names a project may have too."""
        theirs = {name: getattr(self, name) for name in FOLDERS}
        met = [name for name, folder in theirs.items() if folder == self.home or self._is_state(folder)]
        whole = {"project": self.project, "the clone of Tidemark": ROOT}
        met += [name for name, folder in whole.items() if folder.is_relative_to(self.home)]
        if met:
            raise ValueError(
                f"TIDEMARK_HOME={self.home} would mix the state with {', '.join(met)}: name another folder"
            )
        return self

    def _is_state(self, path: Path) -> bool:
        return any(path.is_relative_to(place) for place in self.state)

    @model_validator(mode="after")
    def _reachable(self) -> "Settings":
        if self.own_name in EVERY_ADDRESS:
            raise ValueError(f"{self.own_name} is no name to reach a part by: set TIDEMARK_ADVERTISED_HOST beside it")
        return self

    @model_validator(mode="after")
    def _mailed(self) -> "Settings":
        if self.alarms_mail_to and not self.alarms_smtp:
            raise ValueError("TIDEMARK_ALARMS_MAIL_TO names whom to mail, and TIDEMARK_ALARMS_SMTP no server to do it")
        return self

    def password(self, door: str) -> str:
        """The password with which `<door>_user` logs in: of the file that is set, else the generated one."""
        given: Path | None = getattr(self, f"{door}_password_file")
        if given is not None:
            return given.read_text(encoding="utf-8").rstrip("\r\n")
        if not self.secrets_file.exists():
            hint = f"`tidemark up` generates it; of a {door} elsewhere, TIDEMARK_{door.upper()}_PASSWORD_FILE names it"
            raise NoPassword(f"there is no password for {door}: {hint}")
        secret: str = json.loads(self.secrets_file.read_text(encoding="utf-8"))[f"{door}_password"]
        return secret

    @property
    def is_town(self) -> bool:
        """Whether the project is this repository's own, the sample town."""
        return self.project == ROOT

    def environment(self, *names: str) -> dict[str, str]:
        """These settings as the variables that give another process the same ones, wherever it works; not set: ""."""
        values = {name: getattr(self, name) for name in names}
        return {f"TIDEMARK_{name.upper()}": "" if value is None else str(value) for name, value in values.items()}

    @property
    def own_name(self) -> str:
        return self.advertised_host or self.host

    @property
    def warehouse(self) -> str:
        return self.warehouse_uri or str(self.home / "warehouse")

    @property
    def state(self) -> tuple[Path, ...]:
        """Everything that the platform keeps, and `tidemark reset` removes."""
        folders = (self.run_dir, self.log_dir, self.tmp_dir, self.metastore_dir, self.kafka_dir, self.airflow_dir)
        data = (self.home / "warehouse", self.checkpoints, self.producer_ledger, self.data_docs)
        tools = (self.home / "gx", self.dbt_dir, self.shadow_home)
        return (*folders, *data, *tools, self.secrets_file, self.query_users, *sorted(self.home.glob("ledger.db*")))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kafka(self) -> str:
        return self.kafka_servers or f"{self.own_name}:{self.kafka_port}"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def metastore(self) -> str:
        return self.metastore_uri or f"thrift://{self.own_name}:{self.metastore_port}"

    @property
    def metastore_token(self) -> Path | None:
        """Hadoop's file with the token by which clients of the metastore log in; None: it asks for none."""
        return self.metastore_token_file if self.metastore_uri else self.own_metastore_token

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thrift(self) -> str:
        return self.thrift_host or self.own_name

    @property
    def query_url(self) -> str:
        """Where the commands and programs reach the read server."""
        scheme = "https" if self.query_certificate_file or self.query_ca_file else "http"
        return f"{scheme}://{self.query_host or self.own_name}:{self.query_port}"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def airflow_url(self) -> str:
        """Where the other parts, and the commands, reach Airflow."""
        return f"http://{self.airflow_host or self.own_name}:{self.airflow_port}"

    @property
    def airflow_page(self) -> str:
        """Where people reach it."""
        return self.airflow_public_url or self.airflow_url


FILES = tuple(name for name in Settings.model_fields if name.endswith("_file"))


@cache
def settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
