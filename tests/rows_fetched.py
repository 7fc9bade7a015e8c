"""Count the rows that reach a driver: of its DuckDB queries, and of the reports of Spark's tasks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from spark_jobs.expressions import duckdb_session
from spark_jobs.storage import task_files


class _Counted:
    """A DuckDB connection, or a result of it, that says of each fetch how many rows it gave."""

    def __init__(self, made: Any, told: list[int]) -> None:
        self.made, self.told = made, told

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.made, name)
        if name in ("execute", "sql", "cursor"):
            return lambda *arguments, **named: _Counted(value(*arguments, **named), self.told)
        if name in ("fetchall", "to_arrow_table"):
            return lambda: self._fetched(value())
        return value

    def _fetched(self, rows: Any) -> Any:
        self.told.append(len(rows))
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.made.close()


@contextmanager
def counted() -> Iterator[list[int]]:
    """Meanwhile the list grows by the number of rows of each fetch of this process."""
    told, run, connect = list[int](), task_files.run, duckdb_session.connect

    def reported(*arguments: Any) -> Any:
        report = run(*arguments)
        told.append(report.num_rows)
        return report

    def connected(*arguments: Any, **named: Any) -> Any:
        return _Counted(connect(*arguments, **named), told)

    with patch.object(task_files, "run", reported), patch.object(duckdb_session, "connect", connected):
        yield told
