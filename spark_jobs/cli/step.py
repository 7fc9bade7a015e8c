"""What the commands share: a step on the ledger, statements to the Thrift server, refusals, options, rows for people.

Exit codes: 0 done; 1 refused or failed, the reason is on stderr; 2 wrong usage; 6 another run has done this one's days;
75 another run is at work, try later.
"""

import getpass
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any, NoReturn, get_args

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.page import plain
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Busy, LedgerError, NothingToDo, Store
from spark_jobs.orchestration.interface import NOTHING_TO_DO, RUN_ID, TRY_LATER
from spark_jobs.serving.formatting import Answer, Format, printable, text
from spark_jobs.serving.sql import SqlError, ask, connect


def instant(ctx: click.Context, option: click.Parameter, text: str | None) -> datetime | None:
    """Callback of an option: a moment with its zone."""
    return None if text is None else instant_of(text)


def instant_of(text: str) -> datetime:
    """The moment that a text says. BadParameter where it says none, or lacks its zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 time") from error
    if at.tzinfo is None:
        raise click.BadParameter(f"{text!r} lacks its zone: write {text}Z for UTC")
    return at.astimezone(UTC)


def run_id_of_option(ctx: click.Context, option: click.Parameter, text: str) -> str:
    """Callback of an option: what names a run, and its folder."""
    if RUN_ID.fullmatch(text):
        return text
    raise click.BadParameter(f"{text!r} cannot name a run: letters, digits and . _ -, at most 64, none of . _ - first")


run_option = click.option(
    "--run-id", required=True, callback=run_id_of_option, help="Names the logical run; retries use the same."
)
by_option = click.option("--by", default=getpass.getuser, help="Whose word it is; by default this machine's user.")
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
form_option = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Format)),
    default="table",
    show_default=True,
    help="How to show rows.",
)


@contextmanager
def ledger_step(run_id: str | None = None) -> Iterator[Store]:
    """The ledger for one step: its errors become exit codes, and a failure of the run is written down."""
    store = ledger.open()

    def stop(number: int, frame: FrameType | None) -> None:
        """At once: waiting for Spark's threads would outlast the caller's patience; its JVM ends with this process."""
        _failed(store, run_id, f"stopped by signal {number}")
        store.give_back_all()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield store
    except Busy as error:
        _leave(str(error), TRY_LATER)
    except NothingToDo as error:
        _leave(str(error), NOTHING_TO_DO)
    except LedgerError as error:
        _failed(store, run_id, str(error))
        _leave(str(error), 1)
    except (Exception, KeyboardInterrupt) as error:
        _failed(store, run_id, f"{type(error).__name__}: {error}")
        raise
    finally:
        store.close()


def _failed(store: Store, run_id: str | None, error: str) -> None:
    if run_id is not None:
        store.fail_run(run_id, error.splitlines()[0] if error else error)


def _leave(text: str, code: int) -> NoReturn:
    click.echo(f"tidemark: {text}", err=True)
    sys.exit(code)


def refuse(reason: str, code: int = 1) -> NoReturn:
    """End the command, the reason in one line."""
    _leave(printable(reason), code)


@contextmanager
def refusing(*errors: type[Exception]) -> Iterator[None]:
    """These errors end the command: their text is the reason."""
    try:
        yield
    except errors as error:
        refuse(str(error))


@contextmanager
def thrift() -> Iterator[Callable[[str], list[Any]]]:
    """Runs one statement on the Thrift server, gives its rows."""
    try:
        with connect() as connection:
            yield lambda statement: ask(connection, statement).rows
    except SqlError as error:
        raise LedgerError(str(error)) from error


def show(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table for people."""
    table = Table(*(rows[0] if rows else ["nothing yet"]), title=title)
    for row in rows:
        table.add_row(*map(_text, row.values()))
    Console().print(table)


def _text(value: Any) -> Text:
    if value is None:
        return Text()
    return plain(f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value))


def show_answer(answer: Answer, form: Format = "table") -> None:
    """Rows, for people as wide as their terminal."""
    click.echo(text(answer, form, terminal_width()), nl=False)


def terminal_width() -> int | None:
    """The terminal's width; None where the output goes elsewhere."""
    return Console().width if sys.stdout.isatty() else None
