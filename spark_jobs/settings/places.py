"""Which project is served, and where its definitions and the platform's state lie.

project -> folders of views, schemas, quality, models, dbt; home -> a folder for each part.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from spark_jobs.orchestration import interface

ROOT = Path(__file__).resolve().parent.parent.parent

LAYOUT = {"views": "views", "schemas": "schemas/events", "quality": "schemas/quality", "models": "models", "dbt": "dbt"}
"""The folders of a project's definitions, unless a setting says otherwise."""
TOWN_LAYOUT = {**LAYOUT, "views": "spark_jobs/views", "models": "spark_jobs/models"}
"""The same of this repository, whose project is the sample town."""
TOWN_ORACLE = "spark_jobs.sample.oracle.answers:oracle"
FOLDERS = tuple(f"{name}_folder" for name in LAYOUT)


class Below:
    """A path in `home`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, settings: "Places", owner: object) -> Path:
        return settings.home / self._name


class Folders:
    """What lies in `home`."""

    checkpoints = Below("checkpoints")
    run_dir = Below("run")
    log_dir = Below("logs")
    tmp_dir = Below("tmp")  # scratch of Spark, Hive and Derby; may be emptied while nothing runs
    metastore_dir = Below("metastore")  # Derby's files; they belong to the metastore's process
    kafka_dir = Below("kafka")
    airflow_dir = Below("airflow")  # AIRFLOW_HOME: configuration, database and task logs
    producer_ledger = Below("producer")  # Parquet files of what the demo's producers sent: the oracle's source
    data_docs = Below(interface.DATA_DOCS)
    dbt_dir = Below("dbt")
    dbt_docs = Below(interface.DBT_DOCS)
    expectations = Below("expectations")  # this installation's own: a file here stands in for `quality_folder`'s
    own_metastore_token = Below("run/metastore.token")  # Hadoop's file with the token that our metastore wants
    metastore_login = Below("run/metastore.login")  # the same as JSON: user, password
    shadow_home = Below("drill")  # the home of a drill's shadow platform; gone when the drill has ended
    query_users = Below("query-users.json")  # who else may ask the read server, mode 0600; see `tidemark users`
    secrets_file = Below("secrets.json")  # JSON object of generated passwords, mode 0600


class Places(Folders, BaseModel):
    """The folders of the project and of the state."""

    profile: Literal["embedded", "cluster"] = Field(
        "embedded", description="embedded: everything on this machine under `home`; cluster: the parts run elsewhere."
    )
    supervisor: Literal["supervisord", "compose"] = Field(
        "supervisord", description="Who starts the parts and keeps their logs; compose: an engine of containers."
    )
    home: Path = Field(
        ROOT / interface.HOME, description="State folder: warehouse, checkpoints, ledger, logs, secrets. In `project`."
    )
    warehouse_uri: str | None = Field(None, description="Warehouse folder elsewhere (HDFS, object store).")

    project: Path = Field(ROOT, description="The project's folder: its views, event schemas, quality, models, dbt.")
    views_folder: Path = Field(ROOT / TOWN_LAYOUT["views"], description="The view files, one view each.")
    schemas_folder: Path = Field(ROOT / TOWN_LAYOUT["schemas"], description="The event types' JSON Schemas.")
    quality_folder: Path = Field(ROOT / TOWN_LAYOUT["quality"], description="The project's own expectations.")
    models_folder: Path = Field(ROOT / TOWN_LAYOUT["models"], description="The model files, one model each.")
    dbt_folder: Path = Field(ROOT / TOWN_LAYOUT["dbt"], description="The dbt project of the marts.")

    oracle: str | None = Field(
        None, description="module:attribute of the project's own answers, to which `verify` holds the served ones."
    )

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

    @model_validator(mode="after")
    def _apart(self) -> "Places":
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

    @property
    def is_town(self) -> bool:
        """Whether the project is this repository's own, the sample town."""
        return self.project == ROOT

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
