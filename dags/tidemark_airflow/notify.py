"""Tells people of alarms by Airflow's own notifiers, mail and webhook, where the settings name a receiver.

the ledger's news -> SmtpNotifier, HttpNotifier -> told. Once when an alarm is raised, and once when it is cleared. What
no channel takes is sent with the next run.
"""

import html
import json
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk import BaseNotifier, Context

from spark_jobs.orchestration.interface import (
    BATCH_STEPS,
    MAIL_CONNECTION,
    MAIL_TO_VARIABLE,
    WEBHOOK_CONNECTION,
    WEBHOOK_VARIABLE,
)
from tidemark_airflow import command
from tidemark_airflow.run_id import run_id_of

Alarm = dict[str, Any]
SUBJECT = "Tidemark: {name} {state}"
TEXT = "{message}\nraised {raised_at}, cleared {cleared_at}. What to do: {runbook}"


class AlarmNotifier(BaseNotifier):
    """A callback of the task that watches, red or green: a green run may have seen that an alarm is cleared."""

    template_fields = ()

    def notify(self, context: Context) -> None:
        channels = list(_channels())
        if not channels:
            return
        for alarm in json.loads(command.answer(("alarms", "untold"))):
            if [send for send in channels if self._took(send, alarm, context)]:
                state = ("--cleared",) if alarm["cleared_at"] else ()
                command.answer(("alarms", "told", str(alarm["id"]), *state))

    def _took(self, send: Callable[[Alarm, Context], None], alarm: Alarm, context: Context) -> bool:
        try:
            send(alarm, context)
        except Exception:
            self.log.exception("nobody was told of %s by %s", alarm["name"], send.__name__)
            return False
        return True


class FailureNotifier(AlarmNotifier):
    """A callback of a task that failed for good: looks what rings by that, and tells people.

    A step of a batch run that was killed, as by a system without memory, could not say so itself: this does.
    """

    template_fields = ()

    def notify(self, context: Context) -> None:
        task = context["ti"].task_id
        if task in BATCH_STEPS:
            self._follow("batch", "failed", "--run-id", run_id_of(context["ti"].run_id), f"--task={task}")
        if any(_channels()):
            self._follow("alarms")
            super().notify(context)

    def _follow(self, *arguments: str) -> None:
        command.follow(command.start(arguments), lambda line: self.log.info("%s", line))


def _channels() -> Iterator[Callable[[Alarm, Context], None]]:
    if os.environ.get(MAIL_TO_VARIABLE):
        yield mail
    if os.environ.get(WEBHOOK_VARIABLE):
        yield webhook


def words(alarm: Alarm) -> tuple[str, str]:
    """Subject and text."""
    state = "is cleared" if alarm["cleared_at"] else "is raised"
    shown = {**alarm, "state": state, "cleared_at": alarm["cleared_at"] or "not yet"}
    return SUBJECT.format_map(shown), TEXT.format_map(shown)


# Each calls `notify` itself: a message is no template, whatever braces are in it.


def mail(alarm: Alarm, context: Context) -> None:
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    subject, text = words(alarm)
    content = html.escape(text).replace("\n", "<br>")
    to = os.environ[MAIL_TO_VARIABLE].split(",")
    SmtpNotifier(to=to, subject=subject, html_content=content, smtp_conn_id=MAIL_CONNECTION).notify(context)


def webhook(alarm: Alarm, context: Context) -> None:
    """A JSON object: the alarm, and `text` as chat services want it."""
    from airflow.providers.http.notifications.http import HttpNotifier
    from airflow.sdk import BaseHook
    from airflow.sdk.log import mask_secret

    mask_secret(urlsplit(BaseHook.get_connection(WEBHOOK_CONNECTION).host).path)
    HttpNotifier(http_conn_id=WEBHOOK_CONNECTION, json={"text": "\n".join(words(alarm)), **alarm}).notify(context)
