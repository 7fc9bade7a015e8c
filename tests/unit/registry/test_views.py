"""Views load from their files: names, versions, lookups, buckets; an error names file and line."""

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


def test_b16_a_row_without_bound_may_be_covered_to_any_end(tmp_path: Path) -> None:
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
