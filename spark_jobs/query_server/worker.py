"""Workers: processes that answer one request at a time, and may be ended at any moment; and who makes them.

The views are loaded once, then the process forks a worker for each socket that its door hands it: it is there in a
moment, and shares their memory. It forks while it waits, when no thread of a library holds a lock.
socket: requests -> `Answers` -> replies, as `frames` has them. `nursery` starts it: `python -m
spark_jobs.query_server.worker`.
"""

import base64
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.query_server import encoding, frames
from spark_jobs.query_server.answers import Answer, Answers
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings

Reply = tuple[Mapping[str, Any], bytes]
Replies = Callable[[dict[str, Any]], Reply]


def main() -> None:
    views, store = project_views(), ledger.open()
    view_lock.refuse_changed(store, views)  # what is stored was made by the text that the ledger has
    store.close()
    fork_for_each_socket(lambda: partial(reply, Answers(views, ledger.open(), settings())))


def fork_for_each_socket(made: Callable[[], Replies]) -> None:
    """Until standard input, a socket, ends: take a socket from it, and say the number of the worker that serves it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a worker's end
    door = socket.socket(fileno=0)
    while True:
        said, [*lines], _, _ = socket.recv_fds(door, 1, 1)
        if not said:
            return
        number = os.fork()
        if number == 0:
            _work(socket.socket(fileno=lines[0]), door, made)
        os.close(lines[0])
        door.send(frames.NUMBER.pack(number))


def _work(line: socket.socket, door: socket.socket, made: Callable[[], Replies]) -> NoReturn:
    """Answer until the door hangs up."""
    try:
        door.close()
        replies, read, write = made(), line.makefile("rb"), line.makefile("wb")
        write.write(frames.framed({"ready": True}))
        write.flush()
        while (request := frames.read(read)) is not None:
            write.write(frames.framed(*replies(request)))
            write.flush()
    except Exception as error:
        print(f"a worker ended: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)  # what was loaded before the fork is not this process's to tear down


def reply(answers: Answers, request: dict[str, Any]) -> Reply:
    """Head and body; the head of a refusal has its kind and reason, and no body follows."""
    try:
        return _of_kind[request.pop("ask")](answers, request)
    except Refusal as refusal:
        return {"refused": refusal.kind, "reason": str(refusal)}, b""
    except Exception as error:  # one request that fails takes no other with it
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return {"refused": "broken", "reason": f"the read server failed: {type(error).__name__}; see its log"}, b""


def _rows(answers: Answers, answer: Callable[[], Answer], form: encoding.Format) -> Reply:
    began = time.perf_counter()
    answered = answer()
    meta = answered.meta() | {"seconds": round(time.perf_counter() - began, 6)}
    body = encoding.encoded(answered.rows, form, meta)
    most = answers.settings.query_answer_mb
    if len(body) > most << 20:
        hint = "TIDEMARK_QUERY_ANSWER_MB is the limit; ask for fewer rows or columns"
        raise Refusal("too_large", f"the answer has {len(body) >> 20} MB: {hint}")
    return {"meta": meta, "content": encoding.CONTENT[form]}, body


def _sql(answers: Answers, request: dict[str, Any]) -> Reply:
    form, values = request.pop("format"), _values(request.pop("values", None))
    return _rows(answers, lambda: answers.ask(**request, values=values), form)


def _values(sent: list[Any] | str | None) -> list[Any]:
    """Those of a statement's parameters: a list, or a row of an Arrow stream in base64, for what JSON cannot say."""
    if not isinstance(sent, str):
        return sent or []
    with pa.ipc.open_stream(base64.b64decode(sent)) as stream:
        return [column[0].as_py() for column in stream.read_all().columns]


def _describe(answers: Answers, request: dict[str, Any]) -> Reply:
    values = _values(request.pop("values"))
    columns, parameters = answers.describe(**request, values=values)
    return {"columns": _in_text(columns), "parameters": parameters}, b""


def _schemas(answers: Answers, request: dict[str, Any]) -> Reply:
    return {"schemas": answers.schemas()}, b""


def _tables(answers: Answers, request: dict[str, Any]) -> Reply:
    found = answers.list_tables(**request)
    listed = [{"name": n, "type": kind, "keys": keys, "columns": _in_text(of)} for n, kind, keys, of in found]
    return {"tables": listed}, b""


def _in_text(columns: pa.Schema) -> str:
    return base64.b64encode(columns.serialize()).decode()


def _key(answers: Answers, request: dict[str, Any]) -> Reply:
    form = request.pop("format")
    return _rows(answers, lambda: answers.look_up(**request), form)


def _views(answers: Answers, request: dict[str, Any]) -> Reply:
    return {"views": answers.list_views(**request)}, b""


_of_kind: Mapping[str, Callable[[Answers, dict[str, Any]], Reply]] = {
    "sql": _sql,
    "describe": _describe,
    "key": _key,
    "views": _views,
    "schemas": _schemas,
    "tables": _tables,
}

if __name__ == "__main__":
    main()
