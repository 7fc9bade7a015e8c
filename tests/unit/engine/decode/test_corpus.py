"""The corpus of bad input: each record ends where its file says, whichever way it is decoded."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.bulk import prove
from spark_jobs.engine.decode.reasons import SHOWN, Reason
from spark_jobs.engine.record_outcomes import countable
from tests.corpus.read import FACT, Case, cases
from tests.decoded_by_row import by_row

CASES = list(cases())


def records(some: list[Case]) -> pa.Table:
    rows = [
        {"lsn": 1, "topic": case.topic, "partition": 0, "offset": n, "key": case.key, "value": case.value}
        | {"timestamp": datetime(2025, 3, 1, tzinfo=UTC), "headers": case.headers}
        for n, case in enumerate(some)
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("way", [decode, by_row], ids=["bulk", "row by row"])
def test_it_ends_where_the_corpus_says(case, way, monkeypatch):
    monkeypatch.setattr(prove, "FEWEST", 1)
    sent = records([case])
    decoded = way(sent, project_contracts())
    if case.ends == FACT:
        assert decoded.rejects.select(["reason", "field", "detail"]).to_pylist() == []
        assert [facts.num_rows for facts in countable(decoded.facts).values()] == [1]
        return
    assert not countable(decoded.facts)
    (reject,) = decoded.rejects.to_pylist()
    assert (reject["reason"], reject["field"]) == (case.ends, case.field)
    assert decoded.rejects.select(row_types.RECORD.names).equals(sent), "no byte is lost"
    assert reject["detail"].isascii() and reject["detail"].isprintable()
    assert len(reject["detail"]) <= 2 * SHOWN


def test_all_of_the_corpus_at_once_ends_as_each_record_alone(monkeypatch):
    monkeypatch.setattr(prove, "FEWEST", 1)
    rejects = decode(records(CASES), project_contracts()).rejects
    found = dict(zip(rejects["offset"].to_pylist(), rejects["reason"].to_pylist(), strict=True))
    assert [found.get(n, FACT) for n in range(len(CASES))] == [case.ends for case in CASES]


def test_the_corpus_has_a_record_for_every_reason():
    # The schemas bound every number, test_decode covers one that does not; what is taken back was a fact first.
    never_first = {Reason.NUMBER_TOO_LARGE, Reason.RETRACTED, Reason.ERASED}
    assert {case.ends for case in CASES} == {*Reason, FACT} - never_first
