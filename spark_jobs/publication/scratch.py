"""Remove what died in the middle of something and nobody comes back for: files beside the tables, pins half made.

a day old and older -> scratch folders, schemas of pins that the ledger does not know. `retention` drops due pins.
"""

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyarrow.fs import FileSelector, FileSystem, FileType

from spark_jobs.ledger.store import Store
from spark_jobs.orchestration.interface import PIN
from spark_jobs.publication import pins
from spark_jobs.publication.names import Execute
from spark_jobs.settings import settings

OLD = timedelta(days=1)
BESIDE_TABLES = ("build.", "decode.", "verify_")
"""How the names of scratch folders in the warehouse begin; a run's retry makes its own anew."""
IN_TMP = ("verify-", "audit-")


def tidy(execute: Execute, store: Store) -> list[str]:
    """Remove it, while no run is at work (else RunActive); returns what was removed."""
    with store.maintenance("tidy"):
        return [*_folders(), *_pins(execute, store)]


def _folders() -> Iterator[str]:
    fs, warehouse = FileSystem.from_uri(settings().warehouse)
    for found in fs.get_file_info(FileSelector(warehouse, allow_not_found=True)):
        is_scratch = found.type is FileType.Directory and found.base_name.startswith(BESIDE_TABLES)
        if is_scratch and (found.mtime is None or found.mtime < datetime.now(UTC) - OLD):
            fs.delete_dir(found.path)
            yield found.base_name
    for folder in settings().tmp_dir.glob("*"):
        if folder.name.startswith(IN_TMP) and _is_old(folder):
            shutil.rmtree(folder)
            yield folder.name


def _is_old(path: Path) -> bool:
    return path.stat().st_mtime < time.time() - OLD.total_seconds()


def _pins(execute: Execute, store: Store) -> Iterator[str]:
    """A pin is in the ledger before its schema is there, so one that the ledger does not know is nobody's."""
    schemas = [row[0] for row in execute(f"SHOW SCHEMAS LIKE '{pins.PREFIX}*'")]
    known = {pins.schema(pin.name) for pin in store.pins()}
    for pin in store.pins():
        if pin.state != pins.DONE and pin.created_at < datetime.now(UTC) - OLD:
            pins.drop(execute, store, pin.name)
            yield pins.schema(pin.name)
    for schema in schemas:
        is_pin = schema.startswith(pins.PREFIX) and PIN.fullmatch(schema.removeprefix(pins.PREFIX))
        if is_pin and schema not in known:
            execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            yield schema
