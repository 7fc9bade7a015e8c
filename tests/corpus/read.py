"""Read the corpus of bad input: records, and where each must end.

tests/corpus/<group>.yaml -> cases() -> Case (bytes as a producer sends them; `fact` or a reason code)

A case says its value in one of these ways: `event` (an event type's first example, with `change`d fields, `without`
some, or with `raw` JSON in place of a field's value, and `prefix`, `suffix` around it), `text` (as is, UTF-8), `hex`
(bytes), `null: true`. `{repeat: text, times: n}` stands for a long text anywhere.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spark_jobs.contracts.loader import project_contracts

FACT = "fact"
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """`headers` as pairs; `ends`: fact, or the reason; `field`: the field that the reject names."""

    name: str
    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    ends: str
    field: str | None


def cases() -> Iterator[Case]:
    """Every case of every file."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text("utf-8")):
            yield _case(path.stem, case)


def _case(group: str, case: dict[str, Any]) -> Case:
    headers, key = case.get("headers"), _text(case.get("key", "k"))
    return Case(
        name=f"{group}: {case['case']}",
        topic=case.get("topic") or case["event"],
        key=None if key is None else key.encode(),
        value=_value(case),
        headers=None if headers is None else [(k, None if v is None else v.encode()) for k, v in headers],
        ends=case["ends"],
        field=case.get("field"),
    )


def _value(case: dict[str, Any]) -> bytes | None:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "text" in case:
        return str(_text(case["text"])).encode()
    return _event(case).encode() if "event" in case else None


def _event(case: dict[str, Any]) -> str:
    good = project_contracts().of(case["event"]).examples[0]
    changed = {name: _text(value) for name, value in case.get("change", {}).items()}
    members = {name: json.dumps(value, ensure_ascii=False) for name, value in {**good, **changed}.items()}
    members |= {name: _text(raw) for name, raw in case.get("raw", {}).items()}
    for name in case.get("without", ()):
        del members[name]
    body = "{" + ", ".join(f'"{name}": {raw}' for name, raw in members.items()) + "}"
    return f"{_text(case.get('prefix', ''))}{body}{_text(case.get('suffix', ''))}"


def _text(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    if isinstance(value, list):
        return "".join(map(_text, value))
    return value
