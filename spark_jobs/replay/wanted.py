"""What somebody wants done again: which part of history, from what, for which views."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spark_jobs.batch.plan import Origin
from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.store import LedgerError
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.lsn_ranges import Range, covering


@dataclass(frozen=True)
class Wanted:
    """A part of history; with neither days nor lsns, all of it.

    views: names, from facts alone; none: all. days: of facts (ISO). lsns: of raw records, both ends included.
    promote: the views are served from their newest versions then.
    """

    origin: Origin
    views: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    lsns: tuple[Range, ...] = ()
    promote: bool = False

    @property
    def is_all(self) -> bool:
        return not self.days and not self.lsns

    def as_json(self) -> dict[str, Any]:
        return {
            name: [*map(_plain, value)] if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> "Wanted":
        lsns = tuple((first, last) for first, last in said["lsns"])
        return cls(said["origin"], tuple(said["views"]), tuple(said["days"]), lsns, said.get("promote", False))

    def chosen(self, views: Views) -> list[View]:
        """The views that are built again. LedgerError for a name that no view has."""
        if unknown := {*self.views} - {view.name for view in views}:
            raise LedgerError(f"no view is called {', '.join(sorted(unknown))}; `tidemark views` lists them")
        return [view for view in views if not self.views or view.name in self.views]

    def promotes(self, views: Views, promoted: Mapping[str, int]) -> dict[str, int]:
        """Name -> the version that it is served from then, where it is another one now.

        promoted: name -> version. LedgerError where all views are served from their newest version already.
        """
        if not self.promote:
            return {}
        chosen = self.chosen(views)
        served = {name: promoted.get(name, min(v.version for v in chosen if v.name == name)) for name in self.views}
        newest = {name: max(view.version for view in chosen if view.name == name) for name in self.views}
        if not (newer := dict(newest.items() - served.items())):
            raise LedgerError(f"{', '.join(self.views)}: there is no version but the one that is served")
        return newer


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def in_quarantine(topics: Iterable[str], reasons: Iterable[str]) -> list[Range]:
    """Ranges that cover the lsns of records in quarantine; of these topics, for these reasons, where any are named."""
    if not duckdb_reader.exists(tables.QUARANTINE):
        return []
    named = {"topic": [*topics], "reason": [*reasons]}
    where = [f"{column} IN ({_texts(values)})" for column, values in named.items() if values]
    with duckdb_reader.connect({"quarantine": tables.QUARANTINE}) as con:
        return covering(con, f"SELECT lsn FROM quarantine WHERE {' AND '.join(where) or 'true'}")


def _texts(values: Iterable[str]) -> str:
    return ", ".join(quote_text(value, Dialect.DUCKDB) for value in values)
