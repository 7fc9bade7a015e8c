"""Search every byte of a folder for somebody: a second opinion on what an erasure leaves (I18).

a folder, the number and the name that stood in somebody's records -> the files that have them. Parquet is read column
by column, whatever its pages are packed with; other files are searched as they are, unpacked where they are gzip.
"""

import gzip
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def of(folder: Path, number: int, name: str, apart_from: Collection[str] = ()) -> list[str]:
    """Paths of files, relative to `folder`, that have one of them. apart_from: names of folders in it to leave out."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    inside = (path for path in files if not {*path.relative_to(folder).parts} & {*apart_from})
    return [
        str(path.relative_to(folder)) for path in inside if any(_has(found, number, name) for found in _values(path))
    ]


def _values(path: Path) -> Iterator[Any]:
    data = path.read_bytes()
    if data[:4] == b"PAR1" and data[-4:] == b"PAR1":
        for batch in pq.ParquetFile(path).iter_batches():
            yield from _leaves(batch.to_pylist())
    yield gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    elif isinstance(value, bytes) and value[:4] == b"\xff\xff\xff\xff":
        yield from _leaves(pa.ipc.open_stream(value).read_all().to_pylist())
    elif value is not None:
        yield value


def _has(value: Any, number: int, name: str) -> bool:
    if isinstance(value, bytes):
        return str(number).encode() in value or name.encode() in value
    return value == number or (isinstance(value, str) and (str(number) in value or name in value))
