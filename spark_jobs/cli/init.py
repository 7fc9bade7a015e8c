"""`tidemark init FOLDER`: a small project of one's own, to be changed.

infra/template -> FOLDER. Exit codes: 0 done; 1 the folder is not empty, nothing is written; 2 wrong usage.
"""

import shutil
from pathlib import Path

import click

from spark_jobs.cli.step import refuse
from spark_jobs.settings import ROOT

TEMPLATE = ROOT / "infra/template"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a small project to FOLDER: an event type, two views with a case each, a mart, records for the demo."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        refuse(f"{folder} is not an empty folder: nothing is written")
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gitignore").rename(folder / ".gitignore")
    click.echo(f"wrote {folder}; TIDEMARK_PROJECT={folder} makes it the project, for instance of `tidemark demo`")
