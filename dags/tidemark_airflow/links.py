"""The way from a task to the Data Docs, which the plugin in infra/airflow/plugins serves."""

import re
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from spark_jobs.orchestration.interface import DATA_DOCS, DATA_DOCS_PAGE, PAGES

# The command names a page by its file; only what cannot leave the folder is taken over.
PAGE = re.compile(rf"file://\S*/{DATA_DOCS}/((?!\S*\.\.)[\w./%+-]+\.html)\b")


def page_named_in(line: str) -> str | None:
    """The page of the Data Docs that a line of output names, relative to their folder."""
    found = PAGE.search(line)
    return found[1] if found else None


def data_docs_url(page: str = "") -> str:
    """A page's address on this Airflow; a path only when Airflow does not know its own address."""
    base = conf.get("api", "base_url", fallback="") or ""
    return (base.rstrip("/") if urlsplit(base).netloc else "") + f"{PAGES}/{DATA_DOCS_PAGE}/{page}"


class DataDocsLink(BaseOperatorLink):
    """On a task that is a WithPage; asked for when the task has ended."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return data_docs_url(operator.page)


class WithPage:
    """For operators: the page that the command's lines name last is the task's."""

    operator_extra_links = (DataDocsLink(),)
    page = ""  # else the index

    def hear(self, line: str) -> None:
        super().hear(line)
        self.page = page_named_in(line) or self.page
