"""A wrong view file is refused when views are loaded, with the file, the reason and a hint."""

from pathlib import Path

import pytest

from spark_jobs.registry.views import RegistryError
from tests.unit.registry.test_views import aggregate, load, sequence

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
    "floating key": (aggregate(by='{"rate": "rate"}'), "key cannot be DOUBLE", "CAST it to BIGINT or STRING"),
    "e: a tuple as a key": (
        aggregate(by='{"card": ("card", "cents")}'),
        "Aggregate's by card is the tuple ('card', 'cents'), not a text",
        "one text",
    ),
    "e: a list of measures": (aggregate(measures="[Count()]"), "Aggregate's measures is the list", "docs/views.md"),
    "e: a condition that is no text": (
        aggregate(where="True"),
        "Aggregate's where is the bool True, not a text",
        "one text",
    ),
    "e: a measure of a number": (aggregate(measures='{"n": Sum(3)}'), "Sum's of is the int 3, not a text", "one text"),
    "e: having by a lookup": (
        aggregate(lookups='{"name": Lookup(view="names", key="card", column="name")}', having='"name IS NOT NULL"'),
        "name is looked up when the question is asked, after `having`",
        "in the question",
    ),
    "e: text that does not parse": (
        aggregate(where='"card = = 1"'),
        "it does not parse: Required",
        "docs/expressions.md",
    ),
    "float without tolerance": (aggregate(measures='{"x": Sum("rate")}'), "without tolerance", "measure integers"),
    "sum of text": (aggregate(measures='{"x": Mean("card")}'), "Mean of a STRING", "measure a number"),
    "measure of nothing": (aggregate(measures='{"x": Max()}'), "Max measures nothing", "say of what"),
    "e: a value by nothing": (
        aggregate(measures='{"x": MaxBy("card")}'),
        "measure x: MaxBy does not say by what",
        'MaxBy("colour", by="price")',
    ),
    "e: nothing by a value": (aggregate(measures='{"x": MinBy(by="cents")}'), "MinBy measures nothing", "say of what"),
    "e: a value by an unknown column": (
        aggregate(measures='{"x": MaxBy("card", "cent")}'),
        "measure x, by: `cent`: unknown column",
        "cents",
    ),
    "e: a value by a list": (
        aggregate(measures="""{"x": MinBy("card", "split(card, '-')")}"""),
        "measure x, by: `split(card, '-')`: values are not ordered by ARRAY<STRING>",
        "a number, a text or a time",
    ),
    "e: a value by a number": (aggregate(measures='{"x": MaxBy("card", 3)}'), "MaxBy's by is the int 3", "one text"),
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
    "e: ties of a top that are neither kept nor cut": (
        aggregate(top='Top(k=3, by="payments", ties="all")'),
        "Top's ties is the str 'all', not one of cut, keep",
        "docs/views.md",
    ),
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
    "e: a tuple as the sequence's key": (
        sequence().replace('key="card", rows', 'key=("card",), rows'),
        "Sequence's key is the tuple ('card',), not a text",
        "one text",
    ),
    "e: a tuple as a row's key": (
        sequence().replace('key="card", columns', 'key=("card", "cents"), columns'),
        "Row's key is the tuple",
        "one text",
    ),
    "b14: result under a name of its own": (
        sequence(results='{"opened_at": "TIMESTAMP", "cents": "BIGINT"}'),
        "the result has a column named opened_at",
        "of that name themselves",
    ),
    "b14: result named stretch_end": (
        sequence(results='{"stretch_end": "BIGINT"}'),
        "'stretch_end' cannot be a column",
        "none of Tidemark's own",
    ),
    "result named as the key": (sequence(results='{"card": "STRING"}'), "two columns are named card", "rename"),
    "b14: a column selected twice": (
        sequence(resolve="SELECT key, ts AS opened_at, ts AS closes_at, cents, cents FROM {rows}"),
        "two columns are named cents",
        "once",
    ),
}


def join(left: str = "", right: str = "") -> str:
    sides = {"left": left or 'of="customer_changed", key="customer", columns={"name": "name"}',
             "right": right or 'of="paid", key="card", columns={"cents": "cents"}'}  # fmt: skip
    stated = ", ".join(f"{name}=Side({side})" for name, side in sides.items())
    return f'view = InnerJoin(key="card", {stated}, owner="o", description="d")'


JOINS = {
    "e: a join of no event type": (join(left='of="payed", key="card"'), "unknown event type payed", "paid"),
    "e: a join of an unknown column": (
        join(right='of="paid", key="card", columns={"x": "cent"}'),
        "right column x: `cent`: unknown column",
        "cents",
    ),
    "e: a join by an unknown key": (join(right='of="paid", key="cart"'), "row right, key: `cart`", "card"),
    "e: a join by keys of two kinds": (join(right='of="paid", key="cents"'), "keys of different kinds", "CAST"),
    "e: a column on both sides": (
        join(right='of="paid", key="card", columns={"name": "card"}'),
        "both sides have a column named name",
        "rename",
    ),
    "e: a column of the join's": (
        join(left='of="paid", key="card", columns={"joined_at": "occurred_at"}'),
        "the left side has a column named joined_at",
        "of that name itself",
    ),
    "e: a changelog on the right": (
        join(right='of="customer_changed", key="customer"'),
        "the right side customer_changed is a changelog",
        "make it the left side",
    ),
    "e: a side that is no side": (
        join().replace("Side(", "dict(", 1),
        "InnerJoin's left is the dict",
        "docs/views.md",
    ),
}
WRONG = AGGREGATES | SEQUENCES | JOINS


@pytest.mark.parametrize(("text", "reason", "hint"), WRONG.values(), ids=WRONG)
def test_a_wrong_view_is_refused_with_file_reason_and_hint(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, payments=text)
    assert refused.value.file.endswith("payments.py")
    assert reason in refused.value.reason
    assert hint in refused.value.hint
    assert "\x1b" not in str(refused.value), "no colour codes"
