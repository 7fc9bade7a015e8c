"""Generate the secrets of the reference deployment: `.secrets/`, mode 0600, each made once and kept.

`python3 infra/images/secrets.py` before the first `docker compose up`. Standard library only.
"""

import os
from base64 import urlsafe_b64encode
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".secrets"
USER = "tidemark"
READER = 1000
"""The user of the image."""


def kept(name: str, text: str) -> str:
    """What the file `name` says; `text`, if there was no such file."""
    file = FOLDER / name
    if not file.exists():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
            new.write(text)
    return file.read_text()


def generated() -> str:
    """24 random bytes; not by the standard library's `secrets`, which this file hides when it is run."""
    return urlsafe_b64encode(os.urandom(24)).decode()


def main() -> None:
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    password = kept("postgres_password", generated())
    kept("pgpass", f"postgres:5432:*:{USER}:{password}\n")
    if os.geteuid() == 0:
        for path in (FOLDER, *FOLDER.iterdir()):
            os.chown(path, READER, READER)
    elif os.geteuid() != READER:
        print(f"containers read {FOLDER} as user {READER}: `sudo chown -R {READER} {FOLDER}`")
    print(f"the secrets are in {FOLDER}")


if __name__ == "__main__":
    main()
