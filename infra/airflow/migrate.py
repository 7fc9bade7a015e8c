"""Bring Airflow's database to the installed version, with the pools of a file: `python migrate.py pools.json`.

One process for both commands: importing Airflow is most of what each of them does. Runs in Airflow's environment.
"""

import sys

from airflow.__main__ import main


def run(*arguments: str) -> None:
    """One command of Airflow's own; its failure ends the process with its exit code."""
    sys.argv = ["airflow", *arguments]
    main()


if __name__ == "__main__":
    pools = sys.argv[1]
    run("db", "migrate")
    run("pools", "import", pools)
