"""The form of `drill`, what it becomes on the command line, and the task."""

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk import Context, Param

from spark_jobs.orchestration.interface import EXERCISES
from tidemark_airflow.links import WithPage
from tidemark_airflow.operators import TidemarkOperator, named
from tidemark_airflow.replay_form import LSN

DRILL_PARAMS = {
    "records": Param(
        20_000, type="integer", minimum=100, maximum=200_000, title="Records", description="The newest so many."
    ),
    "from_lsn": Param(None, **LSN, title="First lsn", description="Instead of the newest, those of these lsns."),
    "to_lsn": Param(None, **LSN, title="Last lsn", description="By default the first."),
    "seed": Param(
        None, type=["null", "integer"], minimum=0, title="Seed", description="That of another drill repeats it."
    ),
    "exercises": Param(
        [*EXERCISES], type="array", items={"enum": [*EXERCISES]}, examples=[*EXERCISES], title="Exercises",
        description="What is done to the records, and to the shadow platform that gets them.",
    ),
    "kills": Param(
        4, type="integer", minimum=1, maximum=20, title="Kills", description="Of the shadow's speed application."
    ),
    "kill_live": Param(
        False, type="boolean", title="Kill the live speed application too",
        description="Readers get no news until it is back. Without this, nothing live is touched.",
    ),
}  # fmt: skip
VALUES = ("records", "from_lsn", "to_lsn", "seed", "kills")


def options(form: Mapping[str, Any]) -> Iterator[str]:
    """The options of `tidemark drill`. A value stays in one word with its option, so none can be an option."""
    yield from (f"--{name.replace('_', '-')}={form[name]}" for name in VALUES if form[name] is not None)
    yield from (f"--only={name}" for name in form["exercises"] or ())
    if form["kill_live"]:
        yield "--kill-live"


class DrillStep(WithPage, TidemarkOperator):
    """`tidemark drill`, with the form's fields."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("drill",), **kwargs)

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, *named(context), *options(context["params"])]
