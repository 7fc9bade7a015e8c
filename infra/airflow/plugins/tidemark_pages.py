"""Serves the Data Docs and the dbt docs inside Airflow, to people whom Airflow has let in.

<TIDEMARK_HOME>/data_docs -> /tidemark/docs/ ; <TIDEMARK_HOME>/dbt/docs -> /tidemark/models/

Airflow does not guard the routes of a plugin, so each route here carries Airflow's own guard: who may read the task
logs of the DAG that wrote the pages may read the pages. Their content comes from events, which strangers wrote: the
`sandbox` policy keeps a script in it from speaking to Airflow in the reader's name. A page in a sandbox fetches its
style sheets without the reader's cookie; so `static/`, which holds nothing but the product's own style sheets, fonts
and pictures, is open, by file type.
"""

import os
from pathlib import Path
from urllib.parse import quote

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, Request, Response, status
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from spark_jobs.orchestration import interface

ROOT = Path(__file__).resolve().parents[3]
HOME = Path(os.environ.get("TIDEMARK_HOME") or ROOT / interface.HOME)
# page -> (folder, the DAG that writes it)
PAGES = {
    interface.DATA_DOCS_PAGE: (HOME / interface.DATA_DOCS, interface.BATCH_LAYER),
    interface.DBT_DOCS_PAGE: (HOME / interface.DBT_DOCS, interface.MARTS),
}
OPEN_TYPES = {".css", ".ico", ".otf", ".png", ".svg"}
HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-popups allow-top-navigation-by-user-activation; "
    "img-src 'self' data:; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def create_app() -> FastAPI:
    app = FastAPI(title="Tidemark's pages", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(HTTPException, _refuse)
    for page, (folder, dag_id) in PAGES.items():
        _add_page(app, page, folder, dag_id)
    return app


def _add_page(app: FastAPI, page: str, folder: Path, dag_id: str) -> None:
    files = StaticFiles(directory=folder, html=True, check_dir=False)
    assets = StaticFiles(directory=folder / "static", check_dir=False)
    guard = requires_access_dag("GET", DagAccessEntity.TASK_LOGS, param_dag_id=dag_id)

    @app.get(f"/{page}/static/{{path:path}}")
    async def read_asset(path: str, request: Request) -> Response:
        if Path(path).suffix not in OPEN_TYPES:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "no such style sheet, font or picture")
        return await _read(assets, folder / "static", path, request, dag_id)

    @app.get(f"/{page}/{{path:path}}", dependencies=[Depends(guard)])
    async def read(path: str, request: Request) -> Response:
        return await _read(files, folder, path, request, dag_id)


async def _read(files: StaticFiles, folder: Path, path: str, request: Request, dag_id: str) -> Response:
    if not folder.is_dir():
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"nothing here yet: the DAG {dag_id} writes this page")
    # StaticFiles resolves the path and refuses what is not below its folder, symbolic links included.
    response = await files.get_response(path or ".", request.scope)
    response.headers.update(HEADERS)
    return response


async def _refuse(request: Request, error: Exception) -> Response:
    """A browser without a login is sent to the login page; everything else gets the plain refusal."""
    assert isinstance(error, HTTPException)
    if error.status_code == status.HTTP_401_UNAUTHORIZED and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"/auth/login?next={quote(request.url.path)}", status.HTTP_303_SEE_OTHER)
    return JSONResponse({"detail": error.detail}, error.status_code)


class TidemarkPages(AirflowPlugin):
    name = "tidemark_pages"
    fastapi_apps = [{"app": create_app(), "url_prefix": interface.PAGES, "name": "Tidemark's pages"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": name, "href": f"{interface.PAGES}/{page}/", "destination": "nav", "category": "browse"}
        for name, page in (("Data Docs", interface.DATA_DOCS_PAGE), ("dbt docs", interface.DBT_DOCS_PAGE))
    ]
