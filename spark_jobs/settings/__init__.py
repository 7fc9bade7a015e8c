"""Every setting of Tidemark, with its default; beside it only `storage/java` reads the environment.

environment (`TIDEMARK_*`) -> Settings -> everyone. See them all: `tidemark settings`.
"""

from functools import cache

from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.settings.doors import Doors, NoPassword
from spark_jobs.settings.operations import Operations
from spark_jobs.settings.places import FOLDERS, ROOT, TOWN_ORACLE
from spark_jobs.settings.project_error import ProjectError
from spark_jobs.settings.work import Work

__all__ = ["FILES", "FOLDERS", "ROOT", "TOWN_ORACLE", "NoPassword", "ProjectError", "Settings", "settings"]


class Settings(Operations, Work, Doors, BaseSettings):
    """All of them; durations are in the unit that the name ends in.

    A variable that is empty counts as one that is not set.
    """

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", frozen=True, env_ignore_empty=True, allow_inf_nan=False)

    def environment(self, *names: str) -> dict[str, str]:
        """These settings as the variables that give another process the same ones, wherever it works; not set: ""."""
        values = {name: getattr(self, name) for name in names}
        return {f"TIDEMARK_{name.upper()}": "" if value is None else str(value) for name, value in values.items()}


FILES = tuple(name for name in Settings.model_fields if name.endswith("_file"))


@cache
def settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
