"""Take the bounds of files that are gone out of a Delta table's log: they are values of rows, and outlive the files.

versions that readers need -> their files keep what they have -> of every other file the log forgets the statistics, in
commits and checkpoints; each version stays what it was.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileSystem

NEW = ".new"
FOR_EVER = "delta.logRetentionDuration"


def forget_bounds(root: str, needed: Sequence[int]) -> None:
    """Forget the bounds of each file that is in neither the newest version of the table at `root` nor one `needed`."""
    versions = [DeltaTable(root), *(DeltaTable(root, version=version) for version in needed)]
    live = pa.concat_arrays([pa.table(of.get_add_actions(flatten=True))["path"].combine_chunks() for of in versions])
    fs, base = FileSystem.from_uri(root)
    for file in fs.get_file_info(FileSelector(f"{base}/_delta_log")):
        if file.extension == "json":
            _of_commit(fs, file.path, {*live.to_pylist()})
        elif file.base_name.endswith(".checkpoint.parquet"):
            _of_checkpoint(fs, file.path, live)


def _of_commit(fs: FileSystem, path: str, live: set[str]) -> None:
    with fs.open_input_stream(path) as stream:
        lines = stream.read().decode().splitlines()
    forgotten = [_without_bounds(line, live) for line in lines]
    if forgotten != lines:
        _replace(fs, path, "".join(f"{line}\n" for line in forgotten).encode())


def _without_bounds(line: str, live: set[str]) -> str:
    action: dict[str, Any] = json.loads(line)
    told = [
        of for name, of in action.items() if name in ("add", "remove") and of["path"] not in live and of.get("stats")
    ]
    for of in told:
        del of["stats"]
    return json.dumps(action, separators=(",", ":")) if told else line


def _of_checkpoint(fs: FileSystem, path: str, live: pa.Array) -> None:
    with fs.open_input_file(path) as file:
        rows = pq.read_table(file)
    added = rows["add"].combine_chunks()
    is_gone = pc.and_(pc.is_valid(added), pc.invert(pc.is_in(pc.struct_field(added, "path"), live)))
    if not pc.any(is_gone).as_py():
        return
    names = [field.name for field in added.type]
    fields = {name: added.field(name) for name in names}
    for name in {"stats", "stats_parsed"} & fields.keys():
        fields[name] = pc.if_else(is_gone, pa.scalar(None, fields[name].type), fields[name])
    bare = pa.StructArray.from_arrays([*fields.values()], fields=[*added.type], mask=pc.is_null(added))
    sink = pa.BufferOutputStream()
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), rows.schema.field("add"), bare), sink)
    _replace(fs, path, sink.getvalue().to_pybytes())


def _replace(fs: FileSystem, path: str, data: bytes) -> None:
    with fs.open_output_stream(f"{path}{NEW}") as stream:
        stream.write(data)
    fs.move(f"{path}{NEW}", path)


def forget_versions(root: str) -> None:
    """The newest version of the table stays, and nothing else of its log: for a table that nobody reads as it was."""
    table = DeltaTable(root)
    before = table.metadata().configuration.get(FOR_EVER, "interval 30 days")
    table.alter.set_table_properties({FOR_EVER: "interval 0 days"})
    table.create_checkpoint()
    table.cleanup_metadata()
    table.alter.set_table_properties({FOR_EVER: before})
    fs, base = FileSystem.from_uri(root)
    for file in fs.get_file_info(FileSelector(f"{base}/_delta_log")):
        if file.extension == "crc":  # Spark's, of files and versions that are gone
            fs.delete_file(file.path)
