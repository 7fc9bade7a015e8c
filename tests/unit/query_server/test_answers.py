"""I20 without a platform: what the read server answers is what the files give, now, as of a moment, and of a pin."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.ledger.store import Store
from spark_jobs.query_server.answers import Answers
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import servable
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from tests.local_platform import Platform, event, market


def assert_as_the_files(
    answers: Answers, town: Platform, store: Store, schema: str, head: int, now: dt.datetime
) -> None:
    files = LocalAnswers(town.views, store.current_sources(), head, now)
    every = servable(town.views, files.sources)
    assert len(every) >= len([*town.views])
    for view in every:
        answer = answers.ask(f"SELECT * FROM {view.name}", schema)
        files.con.register("asked", answer.rows)
        compared = compare(files.con, files.answer(view), "FROM asked", shape_of(view, served=True))
        assert compared.rows and not compared.differing, (view.name, compared.first(("files", "door")))


def test_a_pin_of_all_views_gives_the_rows_of_the_files(answers: Answers, town: Platform, store: Store) -> None:
    now = dt.datetime(2026, 3, 1, 13, tzinfo=dt.UTC)
    store.begin_pin("monday", 0, 3, now)
    town.land(market(4))
    assert_as_the_files(answers, town, store, "pin_monday", 3, now)
    read = answers.ask("SELECT 1 AS one FROM pin_monday.sessions").meta()
    assert (read["publication"], read["cut"], read["lsn"], read["as_of"]) == (0, 2, 3, now.isoformat())


def test_the_next_statement_sees_a_new_version_and_tells_its_lsn(answers: Answers, town: Platform) -> None:
    asked = "SELECT sum(orders) AS orders FROM orders_by_day"
    before = answers.ask(asked)
    town.land([event("order_placed")])
    after = answers.ask(asked)
    assert after.rows["orders"][0].as_py() == before.rows["orders"][0].as_py() + 1
    assert [one.meta()["lsn"] for one in (before, after)] == [3, 4]
    assert after.rows.schema.field("orders").type == pa.int64(), "a sum of BIGINT is one, as in Spark"
    worth = {"publication": 0, "cut": 2, "lsn": 4, "as_of": after.meta()["as_of"]}
    assert after.meta() == worth | {"rows": 1, "read": [{"table": "serving.orders_by_day"} | worth]}


def test_a_new_publication_is_seen_and_a_view_without_a_name_is_not(
    answers: Answers, town: Platform, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.query_server.answers.LATEST_SECONDS", 0)
    asked = "SELECT * FROM orders_by_day"
    before = answers.ask(asked)
    store.finish_publication(store.begin_publication("batch", town.build(), cut=3).id)
    after = answers.ask(asked)
    assert (before.meta()["publication"], after.meta()["publication"], after.meta()["cut"]) == (0, 1, 3)
    assert sorted(before.rows.to_pylist(), key=str) == sorted(after.rows.to_pylist(), key=str)
    store.forget_serving_sql("orders_by_day")
    with pytest.raises(Refusal, match="serving has no view orders_by_day"):
        answers.ask(asked)


def test_a_moment_that_the_question_names(answers: Answers, town: Platform, store: Store) -> None:
    published = store.publications()[0]
    assert published.done_at is not None
    for moment in ("0", published.done_at.isoformat()):
        meta = answers.ask("SELECT * FROM orders_by_day", as_of=moment).meta()
        assert (meta["publication"], meta["as_of"]) == (0, published.done_at.isoformat())
    refused = {
        "yesterday": "neither an ISO 8601 time nor a publication",
        "2026-01-01T00:00:00": "lacks its zone",
        "2020-01-01T00:00:00Z": "nothing was published by 2020",
        "77": "publication 77 is not there",
    }
    for moment, why in refused.items():
        with pytest.raises(Refusal, match=why):
            answers.ask("SELECT 1 FROM orders_by_day", as_of=moment)


def test_a_key_is_looked_up(answers: Answers) -> None:
    every = answers.ask("SELECT * FROM orders_by_day").rows.to_pylist()
    wanted = {name: str(every[0][name]) for name in ("store_id", "day")}
    assert answers.look_up("orders_by_day", wanted).rows.to_pylist() == every[:1]
    assert answers.look_up("orders_by_day", {"store_id": "987654"}).rows.num_rows == 0
    with pytest.raises(Refusal, match="has no key colour; it has store_id, day"):
        answers.look_up("orders_by_day", {"colour": "red"})
    with pytest.raises(Refusal, match="Could not convert string '4 OR 1=1' to INT64"):
        answers.look_up("orders_by_day", {"store_id": "4 OR 1=1"})
    with pytest.raises(Refusal, match="serving has no view orders"):
        answers.look_up("orders", {})


def test_tables_of_dbt_and_of_the_ledger(answers: Answers) -> None:
    at = Path(tables.path("marts.daily"))
    write_deltalake(at, pa.table({"a": [1]}))
    assert answers.ask("SELECT a FROM marts.daily").rows.to_pylist() == [{"a": 1}]
    write_deltalake(at, pa.table({"b": ["x"], "a": [2]}), mode="overwrite", schema_mode="overwrite")
    assert answers.ask("SELECT * FROM marts.daily").rows.to_pylist() == [{"b": "x", "a": 2}]
    for name in ("ops.nothing", "marts.`../speed.db/partials`", "marts.`daily/../../master.db/log`"):
        with pytest.raises(Refusal, match="has no table"):
            answers.ask(f"SELECT * FROM {name}")


def test_what_is_too_much_or_wrong_is_named(town: Platform, store: Store) -> None:
    answers = Answers(town.views, store, settings().model_copy(update={"query_rows": 2, "query_memory_mb": 64}))
    refused = {
        "SELECT * FROM word_count": ("too_large", "more than 2 rows: TIDEMARK_QUERY_ROWS"),
        "SELECT wrong FROM word_count": ("failed", 'Referenced column "wrong" not found'),
        "SELECT 1 FROM pin_nobody.word_count": ("unknown", "no pin is called nobody"),
        "SELECT orders / 0 FROM orders_by_day": ("failed", "division by zero"),
        "SELECT avg(orders) || ' a day' AS said FROM orders_by_day": ("failed", "cast it to DECIMAL"),
        "SELECT concat_ws(' ', now(), 1e10) AS said": ("failed", "within a text"),
        "SELECT 'a' || lower(concat(1e10, 'b')) AS said": ("failed", "within a text"),
        "SELECT 'a' || coalesce(now() || 'b', '') AS said": ("failed", "within a text"),
    }
    for statement, (kind, why) in refused.items():
        with pytest.raises(Refusal, match=why) as no:
            answers.ask(statement)
        assert no.value.kind == kind
    pairs = ", ".join(f"(SELECT word AS w{n} FROM word_count)" for n in range(12))
    with pytest.raises(Refusal, match="more memory than it may have: TIDEMARK_QUERY_MEMORY_MB"):
        answers.ask(
            f"SELECT count(DISTINCT concat(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11)) AS n FROM {pairs}"
        )
    assert answers.ask("SELECT 1 AS one").rows.num_rows == 1, "the next one is answered"
