"""What the demo of any project sends and asks: the records of its folder `demo`, and a few rows of every view.

`demo/<topic>.jsonl`, a record a line -> `tidemark send`. `cli.demo` plays it.
"""

from collections.abc import Callable
from contextlib import closing

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging.broker import Broker
from spark_jobs.registry.views import project_views
from spark_jobs.serving.catalogue import is_of_the_moment
from spark_jobs.settings import settings

Tidemark = Callable[..., None]
FEEDING = "Send the records of the folder demo through Kafka"
MORE = ""
LATER: dict[str, str] = {}
EXAMPLES = """Views     ./tidemark views, ./tidemark view show NAME
Why       ./tidemark explain VIEW COLUMN=VALUE"""


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
    """Of each view whose answer stays the same while nothing lands."""
    still = [view for view in project_views().served.values() if not is_of_the_moment(view)]
    return {view.description: f"SELECT * FROM {view.name} ORDER BY ALL LIMIT 5" for view in still}


def _filled() -> set[str]:
    """The topics that have records."""
    with closing(Broker(project_contracts().topics)) as broker:
        _, partitions = broker.partitions()
        return {topic for (topic, _), (_, end) in broker.available(partitions).items() if end}
