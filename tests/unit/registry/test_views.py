"""A wrong view file is refused when views are loaded, with the file, the reason and a hint."""

from pathlib import Path

import pytest

from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.registry.views import RegistryError, Views, load_views, project_views
from spark_jobs.settings import settings

SHAPES = {
    "paid": EventColumns({"card": "STRING", "cents": "BIGINT", "rate": "DOUBLE"}),
    "refunded": EventColumns({"card": "BIGINT"}),
    "customer_changed": EventColumns({"customer": "STRING", "name": "STRING"}, compacted=True),
}
HEAD = """
from spark_jobs.definitions.api import *

"""
NAMES = """view = Aggregate(of="customer_changed", by={"customer": "customer"}, measures={"name": Last("name")},
    owner="o", description="d")"""


def aggregate(**changed: str) -> str:
    arguments = {"of": '"paid"', "by": '{"card": "card"}', "measures": '{"payments": Count()}', **changed}
    stated = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f'view = Aggregate({stated}, owner="o", description="d")'


RESOLVE = "SELECT key, ts AS opened_at, ts AS closes_at, cents FROM {rows}"


def sequence(row: str = 'reach="1 minute"', resolve: str | None = RESOLVE, **changed: str) -> str:
    arguments = {"results": '{"cents": "BIGINT"}', **changed}
    stated = ", ".join(f"{name}={value}" for name, value in arguments.items())
    rows = f'{{"pay": Row(of="paid", key="card", columns={{"cents": "cents"}}, {row})}}'
    return f'view = Sequence(key="card", rows={rows}, resolve={resolve!r}, {stated}, owner="o", description="d")'


def load(folder: Path, **files: str) -> Views:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    return load_views(folder, SHAPES)


AGGREGATES = {
    "unknown event type": (aggregate(of='"payed"'), "unknown event type payed", "paid"),
    "unknown field": (aggregate(measures='{"total": Sum("amount")}'), "measure total: `amount`", "cents"),
    "fields of two kinds": (
        aggregate(of='("paid", "refunded")'),
        "field card is STRING and BIGINT",
        "views of their own",
    ),
    "no keys": (aggregate(by="{}"), "needs keys and measures", "constant"),
    "same name twice": (aggregate(measures='{"card": Count()}'), "two columns are named card", "rename"),
    "reserved name": (aggregate(by='{"lsn": "card"}'), "'lsn' cannot be a column", "lower case"),
    "name that is SQL": (aggregate(by='{"a; drop": "card"}'), "cannot be a column", "lower case"),
    "name of a stored part": (aggregate(by='{"a__sum": "card"}'), "cannot be a column", "single underscores"),
    "floating key": (aggregate(by='{"rate": "rate"}'), "key cannot be DOUBLE", "CAST"),
    "float without tolerance": (aggregate(measures='{"x": Sum("rate")}'), "without tolerance", "measure integers"),
    "sum of text": (aggregate(measures='{"x": Mean("card")}'), "Mean of a STRING", "measure a number"),
    "measure of nothing": (aggregate(measures='{"x": Max()}'), "Max measures nothing", "say of what"),
    "sketch of a float": (aggregate(measures='{"x": ApproxDistinct("rate")}'), "of a DOUBLE", "CAST"),
    "filter that is a number": (aggregate(where='"cents"'), "filter cannot be BIGINT", "condition"),
    "each of no array": (aggregate(each='{"c": "card"}'), "takes an ARRAY<STRING>", "split"),
    "lookup of nothing": (
        aggregate(lookups='{"n": Lookup(view="nothing", key="card", column="name")}'),
        "lookup n reads nothing",
        "one key",
    ),
    "window that is no duration": (
        aggregate(window='Trailing(size="a while", every="1 minute")'),
        "the window has the size 'a while'",
        "30 minutes",
    ),
    "window of part of a pane": (
        aggregate(window='Hopping(size="10 minutes", every="4 minutes")'),
        "a window of 10 minutes every 4 minutes",
        "a multiple of `every`",
    ),
    "panes across midnight": (
        aggregate(window='Hopping(size="14 seconds", every="7 seconds")'),
        "a window of 14 seconds every 7 seconds",
        "a day is one as well",
    ),
    "window of no length": (aggregate(window='Trailing(size="0 days", every="1 day")'), "a window of 0 days", "every"),
    "window of many panes": (
        aggregate(window='Hopping(size="30 days", every="1 second")'),
        "2,592,000 panes",
        "a longer `every`",
    ),
    "window over a changelog": (
        aggregate(
            of='"customer_changed"',
            by='{"customer": "customer"}',
            window='Trailing(size="2 hours", every="1 hour")',
        ),
        "a window over a changelog",
        "window over events",
    ),
    "key named as the window's": (
        aggregate(by='{"window_start": "card"}', window='Hopping(size="2 hours", every="1 hour")'),
        "two columns are named window_start",
        "rename",
    ),
    "derived from nothing": (aggregate(derived='{"x": "nothing + 1"}'), "derived x: `nothing + 1`", "payments"),
    "derived under a taken name": (
        aggregate(derived='{"payments": "payments + 1"}'),
        "two columns are named payments",
        "rename",
    ),
    "derived from a fact's field": (aggregate(derived='{"x": "cents + 1"}'), "derived x: `cents + 1`", "payments"),
    "having no condition": (aggregate(having='"payments"'), "filter cannot be BIGINT", "condition"),
    "top of nothing": (aggregate(top='Top(k=0, by="payments")'), "the top 0 rows", "at least one"),
    "top by a key": (aggregate(top='Top(k=3, by="card")'), "ranked by card", "one of the measures"),
    "top per measure": (
        aggregate(top='Top(k=3, by="payments", per=("payments",))'),
        "ranks per payments",
        "the keys are card",
    ),
}
SEQUENCES = {
    "unbounded without cover": (
        sequence("reach=None", resolve=None, results="{}"),
        "no bound on its reach",
        "does not close before",
    ),
    "reach in words": (sequence('reach="a while"'), "the reach 'a while'", "30 minutes"),
    "unknown placeholder": (
        sequence(resolve="SELECT * FROM {rows} WHERE ts > {gap}"),
        "there is no {gap}",
        "pay_reach",
    ),
    "other tables": (
        sequence(resolve="SELECT * FROM batch.x"),
        "resolve: `SELECT * FROM batch.x`: it reads batch.x",
        "FROM reads {rows}",
    ),
    "two statements": (sequence(resolve="SELECT * FROM {rows}; DROP TABLE x"), "no plain SELECT", "one SELECT"),
    "the clock": (
        sequence(resolve="SELECT key, ts AS opened_at, ts AS closes_at, cents FROM {rows} WHERE rand() < 1"),
        "resolve: `RAND() < 1`: `RAND()`: Rand",
        "from the rows alone",
    ),
    "missing interval": (
        sequence(resolve="SELECT key, cents FROM {rows}"),
        "lacks ['closes_at', 'opened_at']",
        "select",
    ),
    "another kind": (sequence(results='{"cents": "STRING"}'), "result cents is BIGINT, not STRING", "CAST"),
    "instant as a result": (
        sequence(
            resolve="SELECT key, ts AS opened_at, ts AS closes_at, TIMESTAMP '2026-01-31' AS cents FROM {rows}",
            results='{"cents": "TIMESTAMP"}',
        ),
        "result cents is TIMESTAMP, not BIGINT",
        "unix_micros",
    ),
    "no such column": (sequence(resolve="SELECT nothing FROM {rows}"), "resolve: `nothing`: unknown column", "cents"),
    "result under a name of its own": (
        sequence(results='{"opened_at": "TIMESTAMP", "cents": "BIGINT"}'),
        "the result has a column named opened_at",
        "of that name themselves",
    ),
    "result named stretch_end": (
        sequence(results='{"stretch_end": "BIGINT"}'),
        "'stretch_end' cannot be a column",
        "none of Tidemark's own",
    ),
    "result named as the key": (sequence(results='{"card": "STRING"}'), "two columns are named card", "rename"),
    "a column selected twice": (
        sequence(resolve="SELECT key, ts AS opened_at, ts AS closes_at, cents, cents FROM {rows}"),
        "two columns are named cents",
        "once",
    ),
}


@pytest.mark.parametrize(("text", "reason", "hint"), (AGGREGATES | SEQUENCES).values(), ids=[*AGGREGATES, *SEQUENCES])
def test_a_wrong_view_is_refused_with_file_reason_and_hint(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, payments=text)
    assert refused.value.file.endswith("payments.py")
    assert reason in refused.value.reason
    assert hint in refused.value.hint


def test_an_error_names_the_line_that_says_it(tmp_path: Path) -> None:
    text = """view = Aggregate(
    of="paid",
    by={"card": "card"},
    measures={
        "payments": Count(),
        "total": Sum("amount"),
    },
    owner="o",
    description="d",
)
"""
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, payments=text)
    assert refused.value.line == HEAD.count("\n") + 6
    assert str(refused.value).startswith(f"{tmp_path}/payments.py:{refused.value.line}: measure total: `amount`")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("payments", "view = 1", "it has no `view`"),
        ("payments", "import nothing_such", "it does not import: ModuleNotFoundError"),
        ("payments", aggregate(version="2"), "the file of version 2"),
        ("Payments", aggregate(), "the file of version 1"),
    ],
)
def test_a_file_must_hold_the_view_that_it_is_named_for(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(RegistryError, match=reason):
        load(tmp_path, **{name: text})


def test_two_versions_of_a_view_stand_beside_each_other(tmp_path: Path) -> None:
    views = load(tmp_path, payments=aggregate(), payments_v2=aggregate(version="2", where='"cents > 0"'))
    assert [(one.id, one.name, one.column) for one in views] == [
        ("payments", "payments", "payments_v1"),
        ("payments_v2", "payments", "payments_v2"),
    ]
    assert views.by_name["payments"].version == 2


def test_a_lookup_finds_the_key_and_the_measure(tmp_path: Path) -> None:
    lookups = '{"name": Lookup(view="names", key="card", column="name")}'
    views = load(tmp_path, names=NAMES, payments=aggregate(lookups=lookups))
    assert len(views.all) == 2
    with pytest.raises(RegistryError, match="names has no measure title"):
        load(tmp_path, payments=aggregate(lookups=lookups.replace('column="name"', 'column="title"')))


@pytest.mark.parametrize(
    ("by", "bucket"),
    [
        ('{"card": "card", "day": "to_date(occurred_at)"}', "day"),
        ("""{"hour": "date_trunc('HOUR', occurred_at)"}""", "hour"),
        ("""{"month": "date_trunc('MONTH', occurred_at)"}""", None),
        ('{"card": "card"}', None),
    ],
)
def test_the_bucket_is_a_key_whose_day_is_the_day_of_the_event(tmp_path: Path, by: str, bucket: str | None) -> None:
    assert load(tmp_path, payments=aggregate(by=by))["payments"].bucket == bucket


def test_the_bucket_of_a_window_is_its_pane_and_the_answer_has_other_keys(tmp_path: Path) -> None:
    views = load(
        tmp_path,
        hopping=aggregate(window='Hopping(size="1 hour", every="5 minutes")'),
        trailing=aggregate(window='Trailing(size="1 hour", every="5 minutes")'),
    )
    for view in views:
        assert isinstance(view, AggregateView) and view.bucket == "pane" and list(view.keys) == ["card", "pane"]
    assert [list(view.served_keys) for view in views if isinstance(view, AggregateView)] == [
        ["card", "window_start", "window_end"],
        ["card"],
    ]


def test_a_row_without_bound_may_be_covered_to_any_end(tmp_path: Path) -> None:
    """Whether it is covered the laws see; the end need not be open."""
    resolve = RESOLVE.replace("ts AS closes_at", "ts + cents AS closes_at")
    (view,) = load(tmp_path, payments=sequence("reach=None", resolve=resolve))
    assert isinstance(view, SequenceView) and view.resolve is not None


def test_a_refused_query_is_said_where_it_stands(tmp_path: Path) -> None:
    text = sequence(resolve=RESOLVE.replace("cents FROM", "strlen(cents) AS cents FROM"))
    with pytest.raises(RegistryError, match=r"payments\.py:7: resolve: `STRLEN"):
        load(tmp_path, payments=text.replace("resolve=", "\nresolve=").replace("rows=", "\n\nrows="))


def test_every_view_of_the_project_loads_and_is_short() -> None:
    views = project_views()
    assert len(views.all) >= 16
    for view in views:
        lines = (settings().views_folder / f"{view.id}.py").read_text().splitlines()
        assert len(lines) <= (20 if hasattr(view, "measures") else 50), view.id
