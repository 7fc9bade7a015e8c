"""Revisions: what somebody said afterwards of a record, as an entry of the log, decides from then on how it is read."""

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contracts import revision_rows, row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action, Content, Place, Revision, Revisions
from spark_jobs.contracts.schema_history import Entry, SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.assemble import Decoded
from spark_jobs.engine.decode.by_schema import AS_LANDED, decode_logged
from tests.contract_files import records

PAGE = project_contracts().of("page_viewed")
GOOD, OTHER = dict(PAGE.examples[0]), {**PAGE.examples[0], "event_id": "00000000-0000-4000-8000-000000000002"}
MENDED = {**GOOD, "url": "/mended"}
SENT = records("page_viewed", [GOOD, b"{", OTHER, GOOD])
"""At lsn 1: a fact, no JSON, another fact, the first one repeated."""
AT = 5
"""The lsn of what is said."""
EVERY = SchemaHistory((Entry(0, "page_viewed", 1), Entry(0, record_outcomes.RECORD_OUTCOME, 1)))


def said(action: Action, offset: int, content: Any = None, *, lsn: int = AT, of: bytes | None = None) -> Revision:
    """About the record at an offset, or the fact with an identity."""
    read = None if content is None else Content("page_viewed", None, _bytes(content))
    about = {"event_type": "page_viewed", "event_id": GOOD["event_id"], "identity": of} if of else {}
    at = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    return Revision(lsn, action, Place(1, "page_viewed", 0, offset), "why", "ada", at, "r", content=read, **about)


def _bytes(content: Any) -> bytes:
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def history(*said: Revision) -> SchemaHistory:
    return replace(EVERY, revisions=Revisions(said))


def read(*said: Revision, cut: int = AT, sent: pa.Table = SENT) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """(offset and url of the facts, offset and reason of the rejects)."""
    found = decode_logged(sent, history(*said), cut)
    _each_once(found, sent)
    facts = found.facts.get("page_viewed", PAGE.fact_schema.empty_table()).to_pylist()
    return (
        sorted((row["offset"], row["url"]) for row in facts),
        sorted((row["offset"], row["reason"]) for row in found.rejects.to_pylist()),
    )


def _each_once(found: Decoded, sent: pa.Table) -> None:
    """Each record ends as one fact or one reject, which keeps its bytes; each reject has its outcome."""
    facts = record_outcomes.countable(found.facts).values()
    places = [row["offset"] for rows in (*facts, found.rejects) for row in rows.to_pylist()]
    assert sorted(places) == sorted(sent["offset"].to_pylist())
    raw = {row["offset"]: row for row in sent.to_pylist()}
    for row in found.rejects.to_pylist():
        assert {name: row[name] for name in row_types.RECORD.names} == raw[row["offset"]]
    none = record_outcomes.OUTCOME_ROW.empty_table()
    noted = found.facts.get(record_outcomes.RECORD_OUTCOME, none).to_pylist()
    outcomes = sorted((row["offset"], row["reason"]) for row in noted if row["verdict"] == record_outcomes.REJECTED)
    assert outcomes == sorted((row["offset"], row["reason"]) for row in found.rejects.to_pylist())


def identity(event: dict[str, Any]) -> bytes:
    [found] = decode_logged(records("page_viewed", [event]), EVERY).facts["page_viewed"]["identity"].to_pylist()
    return bytes(found)


ALL = [(0, GOOD["url"]), (2, OTHER["url"]), (3, GOOD["url"])]
NO_JSON = [(1, "not_json")]


@pytest.mark.parametrize("cut", [AS_LANDED, 4])
def test_nothing_is_read_otherwise_before_the_cut_has_reached_what_is_said(cut: int) -> None:
    every = [said(Action.READMIT, 1, MENDED), said(Action.RETRACT, 0, of=identity(GOOD))]
    assert read(*every, cut=cut) == (ALL, NO_JSON)


def test_i13_a_readmitted_record_is_one_fact_at_its_own_place() -> None:
    event = {**MENDED, "event_id": "00000000-0000-4000-8000-000000000003"}
    assert read(said(Action.READMIT, 1, event)) == (sorted([*ALL, (1, "/mended")]), [])
    found = decode_logged(SENT, history(said(Action.READMIT, 1, event)), AT).facts["page_viewed"].to_pylist()
    [taken] = [row for row in found if row["offset"] == 1]
    assert taken["identity"] == identity(event), "whoever sends it once more repeats it"


def test_a_readmission_that_the_schemas_refuse_leaves_the_first_verdict() -> None:
    assert read(said(Action.READMIT, 1, b"[]")) == (ALL, NO_JSON)


def test_of_several_about_one_record_the_newest_counts() -> None:
    first, second = said(Action.READMIT, 1, MENDED), said(Action.DISCARD, 1, lsn=7)
    assert read(first, second, cut=6)[1] == [] and read(first, second, cut=7)[1] == NO_JSON


@pytest.mark.parametrize("action", [Action.READMIT, Action.DISCARD])
@pytest.mark.parametrize("offset", [0, 1])
def test_i18_nothing_that_is_said_later_brings_back_an_erased_record(action: Action, offset: int) -> None:
    later = said(action, offset, MENDED if action is Action.READMIT else None, lsn=6)
    found = decode_logged(SENT, history(said(Action.ERASE, offset), later), 6)
    assert offset not in found.facts["page_viewed"]["offset"].to_pylist()
    why = dict(zip(found.rejects["offset"].to_pylist(), found.rejects["reason"].to_pylist(), strict=True))
    assert why[offset] == "erased"


def test_of_several_erasures_of_a_record_the_newest_counts() -> None:
    first, second = said(Action.ERASE, 0), said(Action.ERASE, 0, lsn=7)
    assert [one.lsn for one in Revisions((first, said(Action.DISCARD, 0, lsn=6), second)).at(7).erased.values()] == [7]


def test_a_record_is_read_as_of_another_topic_and_keeps_its_place() -> None:
    sent = records("nobodys", [GOOD])
    one = replace(said(Action.READMIT, 0, GOOD), place=Place(1, "nobodys", 0, 0))
    found = decode_logged(sent, history(one), AT)
    [fact] = found.facts["page_viewed"].to_pylist()
    assert (fact["topic"], fact["offset"], fact["identity"]) == ("nobodys", 0, identity(GOOD))
    assert not found.rejects.num_rows


def test_a_discarded_record_stays_in_quarantine_whatever_schema_comes() -> None:
    later = SchemaHistory((*EVERY.entries, Entry(3, "page_viewed", 2)), Revisions((said(Action.DISCARD, 0),)))
    sent = records("page_viewed", [GOOD, GOOD], version=2)
    found = decode_logged(sent, later, AT)
    assert found.facts["page_viewed"]["offset"].to_pylist() == [1]
    assert found.rejects.select(["offset", "reason"]).to_pylist() == [{"offset": 0, "reason": "unknown_version"}]


def test_a_retracted_fact_and_what_repeats_it_are_rejects_now_and_later() -> None:
    gone = said(Action.RETRACT, 0, of=identity(GOOD))
    retracted = [(0, "retracted"), (1, "not_json"), (3, "retracted")]
    assert read(gone) == ([(2, OTHER["url"])], retracted)
    again = SENT.set_column(0, "lsn", pa.array([9] * SENT.num_rows, pa.int64()))
    assert read(gone, cut=AS_LANDED, sent=again)[1] == retracted, "sent again after it was retracted"


def test_a_superseded_fact_and_what_repeats_it_have_another_content() -> None:
    better = said(Action.SUPERSEDE, 0, MENDED, of=identity(GOOD))
    assert read(better) == ([(0, "/mended"), (2, OTHER["url"]), (3, "/mended")], NO_JSON)
    facts = decode_logged(SENT, history(better), AT).facts["page_viewed"].to_pylist()
    assert {row["identity"] for row in facts if row["url"] == "/mended"} == {identity(GOOD)}


def test_a_fact_that_is_superseded_by_nonsense_is_a_reject_with_its_own_bytes() -> None:
    assert read(said(Action.SUPERSEDE, 0, b"[]", of=identity(GOOD)))[1] == [
        (0, "not_an_object"), (1, "not_json"), (3, "not_an_object"),
    ]  # fmt: skip


def test_what_was_said_of_a_fact_can_be_taken_back() -> None:
    gone, back = (said(what, 0, lsn=lsn, of=identity(GOOD)) for what, lsn in ((Action.RETRACT, 5), (Action.RESTORE, 6)))
    assert read(gone, back, cut=6) == (ALL, NO_JSON) and read(gone, back, cut=5) != (ALL, NO_JSON)


def test_the_log_gives_back_what_was_written_to_it() -> None:
    headers = (("schema_version", b"1"), ("none", None))
    every = (
        said(Action.RETRACT, 0, of=identity(GOOD)),
        said(Action.DISCARD, 1),
        replace(said(Action.READMIT, 2, b"\xff"), content=Content("elsewhere", b"k", b"\xff", headers)),
        replace(said(Action.SUPERSEDE, 3, of=identity(GOOD)), content=Content("page_viewed", b"k", None)),
    )
    rows = revision_rows.rows(every, dt.date(2026, 3, 1))
    assert revision_rows.from_rows(rows.to_pylist()[::-1]).entries == every[::-1]
    assert rows["kind"].unique().to_pylist() == [row_types.REVISION_ROW]
    assert row_types.RECORD_ROW < row_types.REVISION_ROW < row_types.SCHEMA_ROW, "statistics tell where one is"


@pytest.mark.parametrize(
    "header",
    [
        ("revision.action", b"erase"),
        ("revision.action", b"erased"),
        ("revision.identity", b"\x01" * 16),
        ("revision.of_lsn", b"9"),
        ("revision.note", None),
        ("revision.note", b"\xff"),
    ],
)
def test_i13_a_record_says_nothing_of_records_by_its_own_headers(header: tuple[str, bytes | None]) -> None:
    """Also where an older log has them: ours come first."""
    readmitted = Revision(
        *(AT, Action.READMIT, Place(1, "page_viewed", 0, 7), "why", "ada", dt.datetime(2026, 3, 1, tzinfo=dt.UTC), "r"),
        content=Content("page_viewed", b"k", b"{}", (("schema_version", b"1"), header)),
    )
    without = replace(readmitted, content=Content("page_viewed", b"k", b"{}", (("schema_version", b"1"),)))
    [row] = revision_rows.rows([readmitted], dt.date(2026, 3, 1)).to_pylist()
    assert revision_rows.from_rows([row]).entries == (without,)
    older = {**row, "headers": [*row["headers"], {"key": header[0], "value": header[1]}]}
    assert revision_rows.from_rows([older]).entries == (without,)
