"""The `tidemark` command as Airflow tasks.

DAG run -> argument list -> command.py -> exit code -> green, red, red for good, skipped, or later. Arguments are
literals of the DAG file, the sanitised run id, a validated day and name; no field is a template.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from spark_jobs.orchestration.interface import CHECKS_FAILED, COMMAND_VARIABLE, DAG_RUN, NOTHING_TO_DO, TRY_LATER
from tidemark_airflow import command
from tidemark_airflow.links import MergedLink, OutcomeLink, SqlLink, WithPage, data_docs_url, run_merged_into, run_url
from tidemark_airflow.policy import PUBLICATION
from tidemark_airflow.run_id import day_in, day_of, pin_of, run_id_of

TRY_LATER_DELAY = timedelta(seconds=20)
EACH_WAITS = timedelta(seconds=10)
"""Times the runs of the DAG that are under way: however many wait, one looks every so often."""
BACKFILL = "backfill"
ASKED_AT_ONCE = 100
"""Names of runs in one question to Airflow; they are part of an address."""
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
BROKEN = 1
"""`tidemark verify`: not a failure to look, but what was seen."""


class TidemarkOperator(BaseOperator):
    """Runs `tidemark <arguments>`; its lines are the task's log, its exit code the task's state.

    Exit code 3 (checks fail, as they would again) is red without retry; 75 (another run is at work) frees the slot
    and comes back later without using up a try; 6 (there is nothing for this run to do) skips its rest.
    `remedies` names the command to run after a certain exit code; the task is red all the same.
    """

    ui_color = "#d7ecef"

    def __init__(
        self, *, arguments: Sequence[str], remedies: Mapping[int, Sequence[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.arguments = tuple(arguments)
        self.remedies = dict(remedies or {})
        self._process: Any = None

    def execute(self, context: Context) -> None:
        code = self._run(self.arguments_of(context))
        if code in self.remedies:
            self._run(self.remedies[code])
        self.conclude(code, context)

    def arguments_of(self, context: Context) -> list[str]:
        return list(self.arguments)

    def conclude(self, code: int, context: Context) -> None:
        """Turn the exit code into the task's state."""
        if code == TRY_LATER:
            raise AirflowRescheduleException(datetime.now(UTC) + _delay(context))
        if code == NOTHING_TO_DO:
            raise AirflowSkipException("there is nothing for this run to do; the line above says why")
        if code == CHECKS_FAILED:
            raise AirflowFailException("checks fail, and would fail again; the lines above name them")
        if code != 0:
            raise AirflowException(f"tidemark ended with exit code {code}; the lines above say why")

    def hear(self, line: str) -> None:
        """One line of the command's output."""
        self.log.info("%s", line)

    def on_kill(self) -> None:
        if self._process is not None:
            command.stop(self._process)

    def _run(self, arguments: Sequence[str]) -> int:
        self.log.info("$ tidemark %s", " ".join(arguments))
        try:
            self._process = command.start(arguments)
        except FileNotFoundError as error:
            raise AirflowFailException(f"no command at {command.command_path()}: set {COMMAND_VARIABLE}") from error
        try:
            return command.follow(self._process, self.hear)
        finally:
            command.stop(self._process)
            self._process = None


class BatchStep(TidemarkOperator):
    """One step of a batch run, `tidemark batch <step> --run-id R`."""

    operator_extra_links: ClassVar[tuple[BaseOperatorLink, ...]] = (OutcomeLink(), SqlLink())

    def __init__(self, *, step: str, options: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(arguments=("batch", step, *options), **kwargs)

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, "--run-id", run_id_of(context["dag_run"].run_id)]


class PlanStep(BatchStep):
    """The plan of a run, with the partition's day to rebuild, if any. It may be merged into another run.

    The first of a backfill speaks for all its days, also those that Airflow does not let begin yet.
    Then a link leads to the run that has done its day. forces_scheduled_day: whether runs by the schedule rebuild their
    day as well; where there are several for one day, they take in what is new, and rebuild nothing else.
    """

    operator_extra_links = (MergedLink(),)
    merged_into = ""

    def __init__(self, *, forces_scheduled_day: bool = True, **kwargs: Any) -> None:
        super().__init__(step="plan", **kwargs)
        self.forces_scheduled_day = forces_scheduled_day

    def arguments_of(self, context: Context) -> list[str]:
        dag_run = context["dag_run"]
        named = [f"--dag-run={dag_run.run_id}"] if DAG_RUN.fullmatch(dag_run.run_id) else []
        arguments = [*super().arguments_of(context), *named, *_also(context)]
        day = day_of(dag_run.partition_key)
        is_forced = day is not None and (self.forces_scheduled_day or dag_run.run_type != "scheduled")
        return [*arguments, f"--day={day}"] if is_forced else arguments

    def hear(self, line: str) -> None:
        super().hear(line)
        if (dag_run := run_merged_into(line)) is not None:
            self.merged_into = run_url(self.dag_id, dag_run)
            self.log.info("It is here: %s", self.merged_into)


class AuditStep(WithPage, BatchStep):
    """The gate."""

    operator_extra_links = (*WithPage.operator_extra_links, *BatchStep.operator_extra_links)

    def conclude(self, code: int, context: Context) -> None:
        docs = data_docs_url(self.page)
        self.log.info("Data Docs: %s", docs)
        if code == CHECKS_FAILED:
            raise AirflowFailException(
                f"the audit failed, nothing was published, readers keep the last publication: {docs}"
            )
        super().conclude(code, context)


class PublishStep(BatchStep):
    """Publishes, and says so with an asset event whose partition is the run id.

    The key is set here because Airflow starts a consumer either for events with a key or for events without one;
    with a key of our own, a run by hand, a schedule and a backfill all start `marts`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(step="publish", outlets=[PUBLICATION], **kwargs)

    def conclude(self, code: int, context: Context) -> None:
        super().conclude(code, context)
        context["outlet_events"][PUBLICATION].add_partitions(run_id_of(context["dag_run"].run_id))


class VerifyStep(TidemarkOperator):
    """Looks at the promises. One that is broken is red without retry, because the same data would break it again."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("verify",), **kwargs)

    def conclude(self, code: int, context: Context) -> None:
        if code == BROKEN:
            raise AirflowFailException("a promise is broken: `tidemark verify --last` names it, with its first rows")
        super().conclude(code, context)


class TrainStep(TidemarkOperator):
    """Trains the project's models on what the run has published. It can neither stop nor undo `publish`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("model", "train"), **kwargs)

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, "--run-id", run_id_of(context["dag_run"].run_id)]


class PinnedStep(TidemarkOperator):
    """A step over a pin: the pin's name, derived from the DAG run, is the last argument."""

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, pin_of(context["dag_run"].run_id)]


def _also(context: Context) -> list[str]:
    """Options: runs of the backfill that have not planned yet, each with its day, as far as their names tell it."""
    dag_run, ti = context["dag_run"], context["ti"]
    if dag_run.run_type != BACKFILL:
        return []
    plans = ti.get_task_states(dag_id=dag_run.dag_id, task_ids=[ti.task_id])
    waiting = {
        run: day
        for run, states in plans.items()
        if run != dag_run.run_id and states[ti.task_id] not in ENDED and (day := day_in(run)) is not None
    }
    alive = _under_way(ti, dag_run.dag_id, sorted(waiting))
    return [f"--also={run_id_of(run)}={waiting[run]}" for run in alive]


def _under_way(ti: Any, dag_id: str, runs: list[str]) -> list[str]:
    """Those of the runs that Airflow has not ended: a backfill that was cancelled leaves tasks that never began."""
    if len(runs) <= ASKED_AT_ONCE:
        count = ti.get_dr_count(dag_id=dag_id, run_ids=runs, states=["queued", "running"]) if runs else 0
        if count in (0, len(runs)):
            return runs if count else []
    half = len(runs) // 2
    return [*_under_way(ti, dag_id, runs[:half]), *_under_way(ti, dag_id, runs[half:])]


def named(context: Context) -> list[str]:
    """Options: the run's name, and who has triggered it."""
    by = context["dag_run"].triggering_user_name or "airflow"
    return ["--run-id", run_id_of(context["dag_run"].run_id), f"--by={by}"]


def _delay(context: Context) -> timedelta:
    """Until a run that waits looks again: the longer, the more there are."""
    under_way = context["ti"].get_dr_count(dag_id=context["dag_run"].dag_id, states=["running"])
    return max(TRY_LATER_DELAY, EACH_WAITS * under_way)
