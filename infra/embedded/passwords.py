"""Generated passwords and keys, in one file that only its owner can read.

`home`/secrets.json, mode 0600: made on the first use, kept until `tidemark reset`. Never printed, never an argument.
"""

import base64
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.settings import Settings

NAMES = (
    "airflow_admin_password",
    "airflow_jwt_secret",
    "airflow_api_secret",
    "airflow_fernet_key",
    "thrift_password",
    "query_password",
    "kafka_password",
    "kafka_controller_password",
    "metastore_key",
)


def passwords(settings: Settings) -> dict[str, str]:
    """Name -> secret; what the file lacks is generated, once for all parts that may start at the same time."""
    file = settings.secrets_file
    with _alone(file.parent):
        known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        missing = [name for name in NAMES if name not in known]
        if missing:
            known |= {name: _generate(name) for name in missing}
            write_private(file, json.dumps(known, indent=2) + "\n")
    return known


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def write_private(file: Path, text: str) -> None:
    """Replace `file` in one step by one that nobody else can read."""
    write_private_bytes(file, text.encode())


def write_private_bytes(file: Path, content: bytes) -> None:
    """The same, of a file that is no text."""
    file.parent.mkdir(parents=True, exist_ok=True)
    incoming = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(incoming, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
    incoming.rename(file)


def _generate(name: str) -> str:
    if name.endswith("_fernet_key"):  # 32 random bytes in URL-safe base64, as Fernet wants them
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(18 if name.endswith("_password") else 48)
