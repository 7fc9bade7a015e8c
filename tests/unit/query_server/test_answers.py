"""I20 without a platform: what the read server answers is what the files give, now, as of a moment, and of a pin."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.ledger.store import Store
from spark_jobs.query_server.answers import Answers
from spark_jobs.query_server.moments import Moment
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.relations import Read, Relations
from spark_jobs.registry.views import Views
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


def test_a_new_publication_is_seen_and_a_view_whose_name_is_gone_or_of_another_version_is_not(
    answers: Answers, town: Platform, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.query_server.answers.LATEST_SECONDS", 0)
    asked = "SELECT * FROM orders_by_day"
    before = answers.ask(asked)
    store.finish_publication(store.begin_publication("batch", town.build(), cut=3).id)
    after = answers.ask(asked)
    assert (before.meta()["publication"], after.meta()["publication"], after.meta()["cut"]) == (0, 1, 3)
    assert sorted(before.rows.to_pylist(), key=str) == sorted(after.rows.to_pylist(), key=str)
    for name in ("orders_by_day", "airline_names"):
        store.record_serving_sql(name, f"... WHERE view = '{name}_v2'")
    with pytest.raises(Refusal, match=r"serving has no view orders_by_day, .*`tidemark views` those that are filling"):
        answers.ask(asked)
    with pytest.raises(Refusal, match="serving has no view delay_by_carrier_day"):  # it looks up the airlines
        answers.ask("SELECT * FROM delay_by_carrier_day")
    store.forget_serving_sql("orders_by_day")
    with pytest.raises(Refusal, match="serving has no view orders_by_day"):
        answers.ask(asked)


@pytest.mark.parametrize("first_of", ["airline_names", "delay_by_carrier_day"])
def test_i5_all_names_of_a_statement_are_of_one_publication(
    answers: Answers, town: Platform, store: Store, monkeypatch: pytest.MonkeyPatch, first_of: str
) -> None:
    """One comes in force after the first name was given, the other name looks the same view up."""
    asked = (
        "SELECT (SELECT count(*) FROM airline_names) AS names, (SELECT sum(departures) FROM delay_by_carrier_day) AS n"
    )
    for carrier in ("Y1", "Y2"):
        town.land([event("flight_departed"), event("airline_changed", carrier=carrier, name=carrier)])
    monkeypatch.setattr("spark_jobs.query_server.answers.LATEST_SECONDS", 0)
    before, view = answers.ask(asked).rows.to_pylist(), Relations.view

    def published(relations: Relations, schema: str, name: str, moment: Moment) -> Read:
        read = view(relations, schema, name, moment)
        if name == first_of:
            store.finish_publication(store.begin_publication("batch", town.build(), cut=town.lsn).id)
        return read

    monkeypatch.setattr(Relations, "view", published)
    during = answers.ask(asked)
    assert during.rows.to_pylist() == before == answers.ask(asked).rows.to_pylist()
    assert {one.publication for one in during.read} == {0}


def test_an_answer_claims_no_lsn_that_a_view_of_it_was_set_aside_at(
    answers: Answers, town: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.query_server.speed_rows.BEHIND_SECONDS", 0)
    asked = "SELECT sum(occurrences) AS n FROM word_count"
    before = answers.ask(asked).meta()
    every = town.views
    town.views = Views(tuple(view for view in every if view.name != "word_count"), every.chained)
    town.land(market(4))
    town.land(market(5))
    town.views = every
    behind = answers.ask(asked).meta()
    assert (behind["lsn"], behind["as_of"]) == (3, before["as_of"])
    assert answers.ask("SELECT count(*) AS n FROM orders_by_day").meta()["lsn"] == 5
    both = answers.ask("SELECT count(*) AS n FROM orders_by_day, word_count").meta()
    assert (both["lsn"], [one["lsn"] for one in both["read"]]) == (3, [5, 3])


def test_c1_the_engines_own_relations_have_no_name_for_a_statement(answers: Answers) -> None:
    answers.ask("SELECT * FROM sessions")  # its rows are registered from now on
    hidden = "SELECT view_name FROM duckdb_views", "SELECT * FROM `serving.sessions`"
    for one in hidden:
        name = one.partition(" FROM ")[2]
        for statement in (
            one,
            f"WITH RECURSIVE {name} AS ({one} UNION ALL {one}) SELECT * FROM {name}",
            f"WITH RECURSIVE {name} AS ({one} EXCEPT {one}) SELECT * FROM {name}",
            "WITH duc\u212adb_views AS (SELECT 1) SELECT * FROM duckdb_views",
        ):
            try:
                assert answers.ask(statement).rows.to_pylist() == [{"1": 1}], statement
            except Refusal as refusal:
                assert "serving has no view" in str(refusal), refusal


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
        "9" * 20: "is no moment that there is",
        "0001-01-01T00:00:00+14:00": "is no moment that there is",
        "2999-01-01T00:00:00Z": "has not come yet",
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
    for value in ("4 OR 1=1", "3.5", "1e0", "0x1", ""):
        with pytest.raises(Refusal, match=r"store_id is an integer, and .* is none"):
            answers.look_up("orders_by_day", {"store_id": value})
    with pytest.raises(Refusal, match=r"Could not convert|invalid date field"):
        answers.look_up("orders_by_day", {"day": "1 OR 1=1"})
    with pytest.raises(Refusal, match="ops has tables, no views"):
        answers.look_up("runs", {}, schema="ops")
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
