"""A stand-in for the Thrift server, and a built run, for tests of publishing and pins without Spark."""

import datetime as dt
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from deltalake import write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.ledger.runs import BASE
from spark_jobs.ledger.schema import Build, Run
from spark_jobs.ledger.store import Store
from spark_jobs.publication import publish as publishing
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.sql import SqlError
from spark_jobs.storage import tables

NAMES = ("orders_by_day", "word_count")
NOW = dt.timedelta(0)
VIEWS = Views(tuple(project_views().by_name[name] for name in NAMES))


publish = partial(publishing.publish, hold=lambda *_: [])
"""The stand-in has no answers to look at."""


class Server:
    """Keeps the views' texts, and what was said to it; dies before the statement `fatal`, refuses `refused`."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.schemas: set[str] = set()
        self.tables: set[str] = set()
        self.said: list[str] = []
        self.fatal: str | None = None
        self.refused: str | None = None

    def __call__(self, statement: str) -> list[tuple[str, str, bool]]:
        if self.fatal is not None and statement.startswith(self.fatal):
            raise OSError("the server is gone")
        if self.refused is not None and statement.startswith(self.refused):
            raise SqlError("[AMBIGUOUS_REFERENCE] Reference `opened_at` is ambiguous")
        self.said.append(statement)
        if " SCHEMA" in statement:
            return self._of_schemas(statement)
        if statement.startswith("SHOW VIEWS IN "):
            schema = statement.removeprefix("SHOW VIEWS IN ")
            return [(schema, name.split(".")[1], False) for name in self.texts if name.startswith(f"{schema}.")]
        if statement.startswith("SHOW TABLES IN "):
            schema = statement.removeprefix("SHOW TABLES IN ")
            return [(schema, name.split(".")[1], False) for name in self.tables if name.startswith(f"{schema}.")]
        if statement.startswith("CREATE TABLE "):
            self.tables.add(statement.removeprefix("CREATE TABLE IF NOT EXISTS ").split(" ")[0])
        if statement.startswith("DROP VIEW "):
            del self.texts[statement.removeprefix("DROP VIEW ")]
        elif " VIEW " in statement:
            head, text = statement.split(" AS ", 1)
            self.texts[head.split(" ")[-1].replace("`", "")] = text
        return []

    def _of_schemas(self, statement: str) -> list[tuple[str, str, bool]]:
        if statement.startswith("CREATE "):
            self.schemas.add(statement.removeprefix("CREATE SCHEMA IF NOT EXISTS "))
        elif statement.startswith("DROP "):
            dropped = statement.removeprefix("DROP SCHEMA IF EXISTS ").removesuffix(" CASCADE")
            self.schemas.discard(dropped)
            self.texts = {name: text for name, text in self.texts.items() if not name.startswith(f"{dropped}.")}
        return [(schema, "", False) for schema in sorted(self.schemas)]

    def views_said(self) -> list[str]:
        """CREATE and ALTER statements since the last look, without the text."""
        found = [statement.split(" AS ")[0] for statement in self.said if " VIEW " in statement]
        self.said.clear()
        return found


def computed(since: Mapping[int, dt.timedelta], views: Views = VIEWS) -> None:
    """speed.partials: a column per view, and a control row per lsn, committed that long from now."""
    now = dt.datetime.now(dt.UTC)
    columns = [view.column for view in views]
    fields = [("view", pa.string()), ("lsn", pa.int64()), ("control", row_types.CONTROL)]
    schema = pa.schema([*fields, *((column, pa.string()) for column in columns)])
    rows = [
        {"view": row_types.BATCH_ROW, "lsn": lsn, "control": {"views": columns, "finished_at": now + age}}
        for lsn, age in since.items()
    ]
    write_deltalake(tables.path(tables.SPEED_PARTIALS), pa.Table.from_pylist(rows, schema=schema), mode="append",
                    schema_mode="merge")  # fmt: skip


def landed(*lsns: int) -> None:
    """master.log: a control row per lsn."""
    now = dt.datetime.now(dt.UTC)
    rows = [
        {"lsn": lsn, "landed_on": now.date(), "kind": row_types.BATCH_ROW, "batch": {"epoch": 1, "landed_at": now}}
        for lsn in lsns
    ]
    write_deltalake(tables.path(tables.MASTER_LOG), pa.Table.from_pylist(rows, schema=row_types.LOG), mode="append")


def built(store: Store, run_id: str, cut: int, version: int, *, audited: bool = True) -> None:
    """A run with a build of each view, upon what is published."""
    store.begin_run(Run(run_id=run_id, cut=cut))
    current = store.current_publication()
    for view in VIEWS:
        store.record_build(
            Build(
                run_id=run_id,
                view_id=view.id,
                mode="full",
                cut=cut,
                horizon=None,
                batch_version=version,
                results_version=None,
                row_count=1,
                seconds=0.1,
                finished_at=dt.datetime.now(dt.UTC),
            )
        )
    store.progress(run_id, "build", **{BASE: None if current is None else current.id})
    if audited:
        store.record_audit(run_id, passed=True)
