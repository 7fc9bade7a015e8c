"""The read server's routes: statements, views, keys, and what is running.

HTTP request of a user -> a worker's request -> its reply, with the metadata in headers. `/docs` shows all of this.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from spark_jobs.query_server.encoding import Format
from spark_jobs.query_server.flight import door
from spark_jobs.query_server.guard import Guard, said
from spark_jobs.query_server.logins import Logins
from spark_jobs.query_server.pool import Limits, Pool, Reply
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.running import Running
from spark_jobs.query_server.users import User
from spark_jobs.settings import Settings

HEADERS = ("lsn", "cut", "publication", "as_of", "rows", "seconds")
OF_THE_DOOR = ("format", "schema", "as_of")
"""Parameters of a look-up that are no keys."""


class Asked(BaseModel):
    """A statement: one SELECT in Spark's SQL."""

    model_config = ConfigDict(extra="forbid")

    statement: str = Field(description="One SELECT; names without a schema are of `schema`.")
    format: Format = Field("json", description="How rows come.")
    of_schema: str = Field("serving", alias="schema", description="serving, marts, ops or a pin.")
    as_of: str | None = Field(None, description="Names without a schema are answered as of a time, or a publication.")
    values: list[str | int | float | bool | None] = Field([], description="One for each ? of the statement, in order.")


def _user(request: Request) -> User:
    user: User = request.state.user
    return user


ByUser = Annotated[User, Depends(_user)]


def made(settings: Settings) -> Guard:
    """The door of these settings, with its workers, which live as long as it is served."""
    running = Running(Pool(settings.query_statements, Limits(settings.query_seconds, settings.query_memory_mb)))
    logins = Logins(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running.lifespan(app):
            close = door.opened(settings, running, logins)
            yield
            await run_sync(close)

    app = FastAPI(title="Tidemark's read server", version="1", lifespan=lifespan)
    app.exception_handler(Refusal)(lambda _, refusal: said(refusal))
    _add_questions(app, running)
    _add_statements(app, running)
    return Guard(app, logins)


def _add_questions(app: FastAPI, running: Running) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        """That the server lives; needs no login."""
        return {"status": "ok"}

    @app.post("/sql")
    async def sql(asked: Asked, user: ByUser) -> Response:
        """Answer a statement. The metadata is in the headers, and in JSON's `meta`."""
        user.refuse_without("select")
        return _answered(await running.ask(user, {"ask": "sql", **_arguments(asked)}))

    @app.get("/views")
    async def views(user: ByUser, schema: str = "serving") -> Any:
        """The views of a schema, with their keys and columns."""
        user.refuse_without("select")
        head, _ = await running.ask(user, {"ask": "views", "schema": schema})
        return {"views": head["views"]}

    @app.get("/views/{view}")
    async def key(
        view: str, request: Request, user: ByUser, format: Format = "json", schema: str = "serving",
        as_of: str | None = None,
    ) -> Response:  # fmt: skip
        """The rows of a view whose keys have these values: each other parameter is a key."""
        user.refuse_without("key")
        values = {name: value for name, value in request.query_params.items() if name not in OF_THE_DOOR}
        asked = {"ask": "key", "name": view, "key": values, "format": format, "schema": schema, "as_of": as_of}
        return _answered(await running.ask(user, asked))


def _add_statements(app: FastAPI, running: Running) -> None:
    @app.get("/statements")
    async def statements(user: ByUser) -> Any:
        """What is being answered now, by number."""
        user.refuse_without("statements")
        return {number: statement.json() for number, statement in running.statements.items()}

    @app.delete("/statements/{number}")
    async def end(number: int, user: ByUser) -> dict[str, int]:
        """End a statement."""
        user.refuse_without("statements")
        running.end(number)
        return {"ended": number}


def _arguments(asked: Asked) -> dict[str, Any]:
    named = {"text": asked.statement, "format": asked.format, "schema": asked.of_schema, "as_of": asked.as_of}
    return named | {"values": asked.values}


def _answered(reply: Reply) -> Response:
    head, body = reply
    told = {f"Tidemark-{name.replace('_', '-').title()}": head["meta"][name] for name in HEADERS}
    headers = {name: str(value) for name, value in told.items() if value is not None}
    return Response(body, headers=headers, media_type=head["content"])
