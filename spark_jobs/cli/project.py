"""A project of one's own: `tidemark init FOLDER` writes one, and what its demo sends and asks.

infra/template -> FOLDER, to be changed. `demo/<topic>.jsonl`, a record a line -> `tidemark send`; `cli.demo` plays it.
Exit codes: 0 done; 1 the folder is not empty, nothing is written; 2 wrong usage.
"""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click

from spark_jobs.cli.step import refuse
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging.broker import Broker
from spark_jobs.registry.views import project_views
from spark_jobs.serving.catalogue import is_of_the_moment
from spark_jobs.settings import ROOT, settings

TEMPLATE = ROOT / "infra/template"
Tidemark = Callable[..., None]
FEEDING = "Send the records of the folder demo through Kafka"
MORE = ""
LATER: dict[str, str] = {}
EXAMPLES = """Views     ./tidemark views, ./tidemark view show NAME
Why       ./tidemark explain VIEW COLUMN=VALUE"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a small project to FOLDER: an event type, two views with a case each, a mart, records for the demo."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        refuse(f"{folder} is not an empty folder: nothing is written")
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gitignore").rename(folder / ".gitignore")
    click.echo(f"wrote {folder}; TIDEMARK_PROJECT={folder} makes it the project, for instance of `tidemark demo`")


def feed(tidemark: Tidemark) -> None:
    """A topic that has records is left alone: what the demo sends again could count twice until the next build."""
    tidemark("topics", "create")
    filled = _filled()
    for file in sorted((settings().project / "demo").glob("*.jsonl")):
        if file.stem in filled:
            print(f"   {file.stem} has records already; {file.name} is not sent again")
        else:
            tidemark("send", file.stem, "--quiet", "--file", str(file))


def feed_more(tidemark: Tidemark) -> None:
    """There is no more."""


def questions() -> dict[str, str]:
    """A question to each view whose answer stays the same while nothing lands."""
    still = [view for view in project_views().served.values() if not is_of_the_moment(view)]
    return {view.description: f"SELECT * FROM {view.name} ORDER BY ALL LIMIT 5" for view in still}


def _filled() -> set[str]:
    """The topics that have records."""
    with closing(Broker(project_contracts().topics)) as broker:
        _, partitions = broker.partitions()
        return {topic for (topic, _), (_, end) in broker.available(partitions).items() if end}
