"""Hold what readers would be served to what the files give, on a sample, before a run is published (I20).

sources of the run, newest computed lsn, now -> some keys per view -> Spark's rows by the serving text | DuckDB's by the
files -> the names of the views that were looked at, or PublishRefused with a view and its rows.
Build and audit compute with one engine, readers are answered by the other: what both mean by a view is seen here alone.
"""

import json
import random
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, instant, listed, quote, quote_text
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import LedgerError
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.names import Execute
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import servable, serving_sql
from spark_jobs.settings import settings
from spark_jobs.storage import coverage, duckdb_reader

DUCKDB, SPARK = Dialect.DUCKDB, Dialect.SPARK
KEYS = 3
"""So many of a view's built keys, and of those of its speed partials."""
MOST_ROWS = 100_000
"""Of the stored rows of a view that has to be answered whole, such as a ranking; a larger one is not looked at."""
TOLERANCE = 1e-9
"""Relative, of floating values: the engines add in another order."""
Keys = list[dict[str, Any]]


def hold(execute: Execute, views: Views, sources: Mapping[str, Source], seed: int) -> list[str]:
    """Compare the views one by one, in an order that `seed` shuffles, as long as the setting allows."""
    until = time.monotonic() + settings().served_sample_seconds
    files = LocalAnswers(views, sources, _head(sources), datetime.now(UTC))
    order = [view for view in servable(views, sources) if _is_bounded(view, files)]
    random.Random(seed).shuffle(order)
    looked_at = list[str]()
    for view in order:
        if looked_at and time.monotonic() > until:
            break
        _hold(execute, view, files, _keys(view, files, seed), views)
        looked_at.append(view.name)
    return looked_at


def _head(sources: Mapping[str, Source]) -> int:
    """The newest lsn that every reader sees, also one who may read an older snapshot."""
    cut = max((source.cut for source in sources.values()), default=0)
    seen = datetime.now(UTC) - timedelta(milliseconds=settings().stale_read_ms)
    return max([cut, *(lsn for lsn, computed in coverage.covered(cut).items() if computed.at and computed.at < seen)])


def _is_bounded(view: Served, files: LocalAnswers) -> bool:
    """Whether some keys of the view can be asked for, or all of it is small."""
    stored = serving_plan.stored_of(view, files)
    tables = files.sources[stored.id].tables(stored)
    return bool(_asked(view)) or sum(duckdb_reader.row_count(*table) for table in tables) <= MOST_ROWS


def _asked(view: Served) -> dict[str, str]:
    """Columns of the answer by which a few rows are asked for -> the stored key; none where only all of it will do."""
    if isinstance(view, ChainedView):
        return {}
    if isinstance(view, SequenceView):
        return {view.key: "key"}
    return {} if view.top else {name: name for name in view.stored_keys if name in view.served_keys}


def _keys(view: Served, files: LocalAnswers, seed: int) -> Keys:
    """Some keys, the same ones for the same seed."""
    if not (asked := _asked(view)):
        return []
    stored = serving_plan.stored_of(view, files)
    names = ", ".join(f"{quote(key, DUCKDB)} AS {quote(name, DUCKDB)}" for name, key in asked.items())
    keys = Keys()
    for rows in (*files.built(stored)[:1], f"({files.added(stored)})"):
        some = f"SELECT {names} FROM {rows} ORDER BY hash({listed(asked.values(), DUCKDB)}, {seed:d}) LIMIT {KEYS:d}"
        keys += files.con.sql(some).to_arrow_table().to_pylist()
    return keys


def _hold(execute: Execute, view: Served, files: LocalAnswers, keys: Keys, views: Views) -> None:
    if _asked(view) and not keys:
        return
    columns = shape_of(view, served=True).columns
    expected = f"SELECT {listed(columns, DUCKDB)} FROM ({files.answer(view)}) WHERE {_any_of(keys, DUCKDB)}"
    text = serving_sql(view, files.sources, views, files.head, files.now)
    try:
        rows = execute(f"SELECT {_plain(view, columns)} FROM ({text}) WHERE {_any_of(keys, SPARK)}")
    except LedgerError:  # another process decides now: nothing is wrong with the view
        raise
    except Exception as error:
        said = (str(error) or repr(error)).splitlines()[0]
        raise PublishRefused(f"{view.name} cannot be served: {said} Nothing is published.") from error
    files.con.register("served", _table(columns, rows, files.con.sql(f"{expected} LIMIT 0").to_arrow_table().schema))
    compared = compare(files.con, expected, "FROM served", shape_of(view, served=True, tolerance=TOLERANCE))
    if compared.differing:
        said = "; ".join(compared.first(("by the files", "served"), limit=2))
        raise PublishRefused(
            f"{view.name} would be served otherwise than its files say (I20), {compared.differing:,} of "
            f"{compared.rows:,} rows of a sample: {said}. Nothing is published."
        )


def _any_of(keys: Keys, d: Dialect) -> str:
    """SQL: whether a row is of one of the keys; true where all are wanted."""
    return (
        " OR ".join(f"({' AND '.join(_is(name, value, d) for name, value in key.items())})" for key in keys) or "true"
    )


def _is(name: str, value: Any, d: Dialect) -> str:
    return f"{quote(name, d)} IS NULL" if value is None else f"{quote(name, d)} = {_literal(value, d)}"


def _literal(value: Any, d: Dialect) -> str:
    match value:
        case str():
            return quote_text(value, d)
        case datetime():
            return instant(str(since_epoch(value)), d)
        case date():
            return f"DATE '{value.isoformat()}'"
    return str(value)  # a number, a truth value


def _plain(view: Served, columns: Iterable[str]) -> str:
    """The columns as the server's protocol has them: of lists it makes texts."""
    kinds = view.answer_kinds
    return ", ".join(
        f"to_json({quote(name, SPARK)}) AS {quote(name, SPARK)}" if kinds.get(name) == "ARRAY<STRING>" else
        quote(name, SPARK) for name in columns
    )  # fmt: skip


def _table(columns: list[str], rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """The server's rows with the types of `schema`; its protocol has days as texts too."""
    kinds = dict(zip(schema.names, schema.types, strict=True))
    read = ({name: _read(value, kinds[name]) for name, value in zip(columns, row, strict=True)} for row in rows)
    return pa.Table.from_pylist(list(read), schema=schema)


def _read(value: Any, kind: pa.DataType) -> Any:
    if not isinstance(value, str):
        return value
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    return json.loads(value) if pa.types.is_list(kind) else value
