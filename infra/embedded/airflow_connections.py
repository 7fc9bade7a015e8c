"""The connections by which Airflow tells people of alarms: a mail server, a webhook.

settings + files with secrets -> connections as Airflow reads them from its file, which is private.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from spark_jobs.orchestration.interface import MAIL_CONNECTION, WEBHOOK_CONNECTION
from spark_jobs.settings import Settings

SECURITY = {
    "smtp": {"disable_ssl": True, "disable_tls": False},
    "smtps": {"disable_ssl": False, "disable_tls": True},
    "smtp+plain": {"disable_ssl": True, "disable_tls": True},
}
"""Scheme of `alarms_smtp` -> what Airflow's SMTP hook leaves out; plain is for a server on this machine."""


def connections(settings: Settings) -> dict[str, dict[str, Any]]:
    """Connection id -> its fields; none where alarms are told to nobody."""
    made = {}
    if settings.alarms_mail_to and settings.alarms_smtp:
        made[MAIL_CONNECTION] = _mail(settings, settings.alarms_mail_to, settings.alarms_smtp)
    if settings.alarms_webhook_file:
        url = settings.alarms_webhook_file.read_text("utf-8").strip()
        made[WEBHOOK_CONNECTION] = {"conn_type": "http", "host": url}
    return made


def _mail(settings: Settings, to: str, server: str) -> dict[str, Any]:
    at, secret = urlsplit(server), settings.alarms_smtp_password_file
    if at.scheme not in SECURITY:
        raise ValueError(f"TIDEMARK_ALARMS_SMTP is {server}: it begins with {', '.join(SECURITY)}, and ://")
    return {
        "conn_type": "smtp",
        "host": at.hostname,
        "port": at.port,
        "login": unquote(at.username) if at.username else None,
        "password": secret.read_text("utf-8").strip() if secret else None,
        "extra": {**SECURITY[at.scheme], "from_email": settings.alarms_mail_from or to.split(",")[0]},
    }
