"""A task with little memory builds keys that have many rows, on disk what does not fit."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.batch import merge
from spark_jobs.batch.key_ranges import KeyRange
from spark_jobs.batch.merge import Unit
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine.partials import ViewFailed
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader

COUNT, KEYS, MICROS = 160_000, 16, 1_500
MEGABYTES = 64


@pytest.fixture(params=[MEGABYTES])
def little_memory(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """A task's connection of its own, with so many megabytes of memory; the folder of its files."""
    monkeypatch.setenv("TIDEMARK_TASK_MEMORY_MB", str(request.param))
    settings.cache_clear()
    settings().tmp_dir.mkdir()
    duckdb_reader.of_task.cache_clear()
    yield platform_home
    duckdb_reader.of_task.cache_clear()


def trades() -> SequenceView:
    view = project_views()["trades"]
    assert isinstance(view, SequenceView)
    return view


def rows(view: SequenceView, lsn: int) -> pa.Table:
    """COUNT rows of a few keys that are never quiet, those of the next lsn after them; texts as long as ids."""
    numbers = np.arange(COUNT, dtype=np.int64)
    kinds = np.array([row.kind for row in view.rows])
    known = {
        "lsn": pa.array(np.full(COUNT, lsn)),
        "key": pa.array(numbers % KEYS),
        "ts": pa.array((numbers + lsn * COUNT) * MICROS),
        "kind": pa.array(kinds[np.random.default_rng(lsn).integers(0, len(kinds), COUNT)]),
    }
    texts = {name: pa.array([f"{name}-{number:030d}" for number in numbers]) for name in ("tie", *view.columns)}
    schema = pa.schema([("lsn", pa.int64()), *view.partial_schema])
    return pa.table([(known | texts)[name] for name in schema.names], names=schema.names).cast(schema)


def built(view: SequenceView, new: pa.Table, files: dict[str, list[str]], folder: Path) -> dict[str, list[str]]:
    """The files of each table, once the new rows are among what the files have."""
    staged = folder / f"{new['lsn'][0]}.parquet"
    pq.write_table(new, staged)
    old = tuple(tuple(files[table]) for table in view.tables) if files else ()
    roots = {table: str(folder / table) for table in view.tables}
    made = dict[str, list[str]]()
    for batch in merge._done(Unit(view, KeyRange(view.ordered_by), (str(staged),), built=old), roots):
        for file in batch.to_pylist() if batch else ():
            made.setdefault(file["name"], []).append(f"{roots[file['name']]}/{file['file']['path']}")
    return made


def test_few_keys_with_many_rows_are_built_upon_with_little_memory(little_memory: Path) -> None:
    """What is built has more bytes than the task may hold."""
    view, files = trades(), dict[str, list[str]]()
    for lsn in (1, 2):
        files = built(view, rows(view, lsn), files, little_memory)
    stored, results = (pq.read_table(files[table]) for table in view.tables)
    assert stored.nbytes + results.nbytes > MEGABYTES * 1_000_000
    in_order = stored.select(["key", "ts"])
    assert in_order.num_rows == 2 * COUNT
    assert in_order.equals(in_order.sort_by([("key", "ascending"), ("ts", "ascending")]))


@pytest.mark.parametrize("little_memory", [16], indirect=True)
def test_what_does_not_fit_at_all_fails_by_the_name_of_its_view(little_memory: Path) -> None:
    with pytest.raises(ViewFailed, match="view trades, about 0 rows: Out of Memory"):
        built(trades(), rows(trades(), 1), {}, little_memory)
