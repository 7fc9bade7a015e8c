"""The tasks of `replay`, around those of a batch run: what it would touch, what it changes, and who agrees."""

import re
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from spark_jobs.orchestration.interface import NOTHING_DIFFERS
from tidemark_airflow.links import WithPage, data_docs_url, page_named_in
from tidemark_airflow.operators import BatchStep, TidemarkOperator, named
from tidemark_airflow.replay_form import options
from tidemark_airflow.run_id import run_id_of

COMPARE, AGREE = "compare", "agree"
BODY_LINES = 200


class PreviewStep(WithPage, TidemarkOperator):
    """`tidemark replay plan`, with the form's fields: it is written down and shown; nothing is computed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("replay", "plan"), **kwargs)

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, *named(context), *options(context["params"])]


class ReplayPlanStep(BatchStep):
    """The run begins here; a dry run ends."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(step="plan", **kwargs)

    def execute(self, context: Context) -> None:
        if context["params"]["dry_run"]:
            raise AirflowSkipException("a dry run ends with its preview; trigger it without to go on")
        super().execute(context)


class CompareStep(WithPage, TidemarkOperator):
    """What readers would see otherwise; the next task shows these lines to whoever has to agree."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("replay", "compare"), **kwargs)
        self.lines: list[str] = []

    def arguments_of(self, context: Context) -> list[str]:
        return [*self.arguments, run_id_of(context["dag_run"].run_id)]

    def execute(self, context: Context) -> Any:
        super().execute(context)
        return self.lines

    def hear(self, line: str) -> None:
        super().hear(line)
        self.lines.append(line)


def _as_text(line: str) -> str:
    """A line of its own in Markdown, which takes nothing in it for markup: rows are data."""
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{'- ' if line.startswith(' ') else ''}{fence} {line.strip()} {fence}"


class Agreement(ApprovalOperator):
    """Shows under *Required actions* what changes, and waits. Where nothing does, nobody is asked."""

    template_fields = ()

    def __init__(self, **kwargs: Any) -> None:
        # People may take longer than any task of the platform's own.
        super().__init__(subject="A replay waits for approval", **{**kwargs, "execution_timeout": None})

    def execute(self, context: Context) -> Any:
        lines = context["ti"].xcom_pull(task_ids=COMPARE) or []
        if any(line.startswith(NOTHING_DIFFERS) for line in lines):
            return None
        pages = [page for line in lines if (page := page_named_in(line)) is not None]
        told = [_as_text(line) for line in lines[:BODY_LINES] if page_named_in(line) is None]
        links = [f"[All rows that differ]({data_docs_url(page)})" for page in pages]
        self.body = "\n\n".join([context["params"]["reason"], "What readers would see otherwise:", *told, *links])
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Whatever the answer, the next task records it."""
        return HITLOperator.execute_complete(self, context, event)


class AnswerStep(TidemarkOperator):
    """Records who approved; or cancels what somebody rejected, and skips the rest."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(arguments=("replay",), **kwargs)

    def execute(self, context: Context) -> None:
        if (answer := context["ti"].xcom_pull(task_ids=AGREE)) is None:
            return
        super().execute(context)
        if not _is_approved(answer):
            raise AirflowSkipException("it was rejected: the replay is cancelled, readers keep what they have")

    def arguments_of(self, context: Context) -> list[str]:
        answer = context["ti"].xcom_pull(task_ids=AGREE)
        user = answer["responded_by_user"] or {}
        words = "approve" if _is_approved(answer) else "cancel"
        by = user.get("name") or user.get("id") or "airflow"
        return [*self.arguments, words, run_id_of(context["dag_run"].run_id), f"--by={by}"]


def _is_approved(answer: Any) -> bool:
    return bool(answer["chosen_options"] == [ApprovalOperator.APPROVE])
