"""Airflow's REST API, as far as the demo and the tests call it.

settings + admin password -> a token -> runs of a DAG. The password travels in a request body only.
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from infra.embedded.airflow import ADMIN
from infra.embedded.direct import ask
from infra.embedded.passwords import passwords
from spark_jobs.settings import Settings

SECONDS = 60.0


class AirflowError(Exception):
    """Airflow refused a call, or did not answer it; says which, and what it answered."""


class AirflowApi:
    """One login; `get` and `post` take paths below /api/v2."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.airflow_url
        login = {"username": ADMIN, "password": passwords(settings)["airflow_admin_password"]}
        self._token: str = self._call("POST", "/auth/token", login)["access_token"]

    def get(self, path: str) -> Any:
        return self._call("GET", f"/api/v2{path}", None, self._token)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", f"/api/v2{path}", body, self._token)

    def trigger(self, dag_id: str, **body: Any) -> str:
        """Start a run by hand; its id."""
        run_id: str = self.post(f"/dags/{dag_id}/dagRuns", {"logical_date": None, **body})["dag_run_id"]
        return run_id

    def pause(self, dag_id: str, is_paused: bool) -> None:
        """Whether runs of the DAG begin by themselves; what would begin one meanwhile is not made up for."""
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": is_paused}, self._token)

    def run_state(self, dag_id: str, run_id: str) -> tuple[str, dict[str, str | None]]:
        """State of the run, and of each of its tasks."""
        run = urllib.parse.quote(run_id, safe="")
        path = f"/dags/{dag_id}/dagRuns/{run}"
        tasks = self.get(f"{path}/taskInstances")["task_instances"]
        return self.get(path)["state"], {task["task_id"]: task["state"] for task in tasks}

    def _call(self, method: str, path: str, body: dict[str, Any] | None, token: str | None = None) -> Any:
        request = urllib.request.Request(self._url + path, method=method)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        data = json.dumps(body).encode() if body is not None else None
        try:
            with ask(request, data, seconds=SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AirflowError(
                f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:500]}"
            ) from error
        except OSError as error:  # nobody there, or no answer in time
            raise AirflowError(f"{method} {path}: {error}; see `./tidemark logs airflow-api`") from error
