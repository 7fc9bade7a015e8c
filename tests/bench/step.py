"""`python -m tests.bench.step FILE ARGUMENTS`: a `tidemark` command, and in FILE the rows that its driver got."""

import atexit
import json
import sys
from pathlib import Path

from spark_jobs.cli import main
from tests.rows_fetched import counted

if __name__ == "__main__":
    file = Path(sys.argv[1])
    with counted() as told:
        atexit.register(lambda: file.write_text(json.dumps({"rows": sum(told)})))
        main(sys.argv[2:])
