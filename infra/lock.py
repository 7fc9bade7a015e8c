"""Resolve the lock files anew: the environments with hashes for every platform, then every set of jars.

infra/locks/*.in, *.xml -> *.txt, *.lock. Alone: `make lock`. Pins that still fit stay; `make lock UPGRADE=1`
takes the newest that the `.in` files allow.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from infra import jars  # noqa: E402
from infra.setup import find_uv, run  # noqa: E402

# No address of a registry or folder of this machine gets into a lock.
OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes")
PRIVATE = ("--no-emit-index-url", "--no-emit-find-links")


def main(arguments: list[str]) -> int:
    """Write every lock file; `--upgrade` forgets the present pins."""
    uv = find_uv()
    for name in ("spark", "spark-develop", "airflow", "airflow-develop", "flink", "pathway"):
        files = (f"infra/locks/{name}.in", "-o", f"infra/locks/{name}.txt")
        run(uv, "pip", "compile", "--quiet", *OPTIONS, *PRIVATE, *arguments, *files)
    for one in jars.sets().values():
        jars.lock(one)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
