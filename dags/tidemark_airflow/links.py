"""The ways from a task: to the Data Docs, which the plugin in infra/airflow/plugins serves, and to another run."""

import re
from typing import Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from spark_jobs.orchestration.interface import DAG_RUN, DATA_DOCS, DATA_DOCS_PAGE, MERGED_INTO, PAGES, RUNS, SQL_PAGE
from tidemark_airflow.run_id import run_id_of

# The command names a page by its file; only what cannot leave the folder is taken over.
PAGE = re.compile(rf"file://\S*/{DATA_DOCS}/((?!\S*\.\.)[\w./%+-]+\.html)\b")

TAKER = re.compile(rf"{MERGED_INTO} \S+ \(({DAG_RUN.pattern})\)", DAG_RUN.flags)


def page_named_in(line: str) -> str | None:
    """The page of the Data Docs that a line of output names, relative to their folder."""
    found = PAGE.search(line)
    return found[1] if found else None


def run_merged_into(line: str) -> str | None:
    """The DAG run that a line names as the one that has done the days of this one."""
    found = TAKER.search(line)
    return found[1] if found else None


def data_docs_url(page: str = "") -> str:
    """A page's address on this Airflow."""
    return _url(f"{PAGES}/{DATA_DOCS_PAGE}/{page}")


def run_url(dag_id: str, run_id: str) -> str:
    """The page of a DAG run."""
    return _url(f"/dags/{dag_id}/runs/{quote(run_id, safe='')}")


def _url(path: str) -> str:
    """An address; a path only when Airflow does not know its own."""
    base = conf.get("api", "base_url", fallback="") or ""
    return (base.rstrip("/") if urlsplit(base).netloc else "") + path


class DataDocsLink(BaseOperatorLink):
    """On a task that is a WithPage; asked for when the task has ended."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return data_docs_url(operator.page)


class MergedLink(BaseOperatorLink):
    """On the plan of a run that was merged; on others it leads nowhere."""

    name = "The run that did it"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return str(operator.merged_into)


class OutcomeLink(BaseOperatorLink):
    """On the steps of a batch run: what came of each view."""

    name = "Outcome per view"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return data_docs_url(f"{RUNS}/{run_id_of(ti_key.run_id)}/index.html")


class SqlLink(BaseOperatorLink):
    """On the same: the text of each serving view."""

    name = "SQL of the views"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return data_docs_url(f"{RUNS}/{SQL_PAGE}")


class WithPage:
    """For operators: the page that the command's lines name last is the task's."""

    operator_extra_links = (DataDocsLink(),)
    page = ""  # else the index

    def hear(self, line: str) -> None:
        super().hear(line)
        self.page = page_named_in(line) or self.page
