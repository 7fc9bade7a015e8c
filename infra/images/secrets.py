"""Generate the secrets of the reference deployment: `.secrets/`, mode 0600, made once and kept.

`python3 infra/images/secrets.py` before the first `docker compose up`. Standard library only.
"""

import os
import secrets
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".secrets"
USER = "tidemark"


def write(name: str, text: str) -> None:
    with os.fdopen(os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def main() -> None:
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    if (FOLDER / "pgpass").exists():
        print(f"{FOLDER} has its secrets already")
        return
    password = secrets.token_urlsafe(24)
    write("postgres_password", password)
    write("pgpass", f"postgres:5432:*:{USER}:{password}\n")
    print(f"made {FOLDER}; containers read it as user 1000, so `chown -R 1000 {FOLDER}` where yours is another")


if __name__ == "__main__":
    main()
