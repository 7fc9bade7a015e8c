"""A worker: a process that answers one request at a time, and may be ended at any moment.

stdin: requests -> `Answers` -> stdout: replies, as `frames` has them. Its door starts it: `python -m
spark_jobs.query_server.worker`. What is printed goes to stderr.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from spark_jobs.ledger import store as ledger
from spark_jobs.query_server import encoding, frames
from spark_jobs.query_server.answers import Answer, Answers
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings

Reply = tuple[Mapping[str, Any], bytes]


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that is printed gets among the replies
    answers = Answers(project_views(), ledger.open(), settings())
    replies.write(frames.framed({"ready": True}))
    replies.flush()
    while (request := frames.read(sys.stdin.buffer)) is not None:
        replies.write(frames.framed(*reply(answers, request)))
        replies.flush()


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
    form = request.pop("format")
    return _rows(answers, lambda: answers.ask(**request), form)


def _key(answers: Answers, request: dict[str, Any]) -> Reply:
    form = request.pop("format")
    return _rows(answers, lambda: answers.look_up(**request), form)


def _views(answers: Answers, request: dict[str, Any]) -> Reply:
    return {"views": answers.list_views(**request)}, b""


_of_kind: Mapping[str, Callable[[Answers, dict[str, Any]], Reply]] = {"sql": _sql, "key": _key, "views": _views}

if __name__ == "__main__":
    main()
