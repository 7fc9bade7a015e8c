"""What a view file or a model file says: plain data, no engine. They import these names from `definitions.api`.

`Aggregate` or `Sequence` -> `binder` joins it to the event types -> both layers, serving, checks and docs.
`InnerJoin` -> `inner_join` writes it out as a Sequence.
`LinearModel` -> `registry.models` joins it to its view and event types -> training.
A view lives in `<name>.py` of the views' folder as `view = Aggregate(...)`; docs/views.md has examples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from spark_jobs.definitions.measures.base import Measure
from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """A column of another view, joined at serving: its row whose only key equals our column `key`.

    `view` must be an Aggregate with one key column; `column` is one of its measures. No match gives NULL.
    """

    view: str
    key: str
    column: str


@dataclass(frozen=True, kw_only=True)
class Hopping:
    """Overlapping windows: one of `size` begins at each multiple of `every`, counted from 1970-01-01 (UTC).

    Both are durations such as "10 minutes"; size is a multiple of `every`, and a day is one as well. Served as
    window_start (included) and window_end (not included).
    """

    size: str
    every: str


@dataclass(frozen=True, kw_only=True)
class Trailing:
    """One window, the last `size` before the question is asked; of a pin: before its moment.

    It moves on by panes of `every`: the current one and those before it, `size` in all, so the answer covers `size` or
    up to `every` less. Events of later panes wait for their time.
    """

    size: str
    every: str


Window = Hopping | Trailing


@dataclass(frozen=True, kw_only=True)
class Top:
    """Only the first `k` rows by a measure or derived column, the greatest first; `rank` counts them from 1.

    per: keys (or window_start) of which each combination has a list of its own.
    ties: "cut" ranks rows with equal values by their keys, and serves k of them; "keep" gives them one rank, 1 more
    than there are greater ones, and serves all that are as great as the k-th.
    """

    k: int
    by: str
    per: tuple[str, ...] = ()
    ties: Literal["cut", "keep"] = "cut"


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """Keys and mergeable measures over one or several event types, or over another view's answer.

    of: event type, or several (a field that a type does not have is NULL there; `event_type` tells them apart); "*" for
    every type, of which `event_id`, `event_type`, `occurred_at`, `deleted` and `topic` are there.
    of_view: in the place of `of`, a view, whose rows are counted when the question is asked; nothing is stored. Its
    columns are there for expressions, and `asked_at`, the moment of the question.
    by: key column -> expression. measures: column -> Measure. where: which facts count.
    each: column -> expression of kind ARRAY<STRING>; a fact counts once per element, as that column.
    lookups: column -> Lookup, joined at serving, so that a changed name shows at once.
    window: Hopping or Trailing; panes of its `every` are stored, and widened when served. For windows that do not
    overlap a key is enough: `date_trunc('HOUR', occurred_at)`, or `window_start('10 minutes', occurred_at)`.
    derived: column -> expression over the answer's keys and measures; NULL where it fails. having: which rows of the
    answer are served. top: how many of them, and which.
    """

    of: str | tuple[str, ...] = ()
    of_view: str | None = None
    by: Mapping[str, str]
    measures: Mapping[str, Measure]
    where: str | None = None
    each: Mapping[str, str] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    window: Window | None = None
    derived: Mapping[str, str] = field(default_factory=dict)
    having: str | None = None
    top: Top | None = None
    version: int = 1
    owner: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """How one kind of row of a Sequence is made from an event type.

    key: BIGINT or STRING expression; ts: TIMESTAMP expression; columns: column -> expression.
    side_input: an event type whose newest fact of an earlier micro-batch is at hand: its fields are columns of the
    expressions, NULL where there was none yet. For what holds for all rows at once, such as a model's weights. It goes
    by the place in the log, not by time, so that a row that was scored keeps its score.
    reach: how long after `ts` the row may still affect a result, such as "30 minutes"; None (unbounded) only where a
    result of `resolve` covers the row until it is consumed; `{forever}` is the end of what may wait for ever.
    carried: the row is a dimension in force until the next row of its kind (as-of joins).
    """

    of: str
    key: str
    ts: str = "occurred_at"
    reach: str | None
    carried: bool = False
    where: str | None = None
    side_input: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


SOURCE_LSN = "source_lsn"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Tidemark sends an event to Kafka for each row for which `where` is true, once the row is in the speed layer.

    of: its event type; each of its fields is a column of the row, and `source_lsn` the row's lsn. same: the columns by
    which a repetition is recognised: they make the event_id.
    """

    of: str
    where: str
    same: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """Order matters: rows per key, and one query from rows to results.

    key: served name of the key column. rows: kind -> Row.
    resolve: one query over `{rows}` (columns key, ts, kind, tie and all `columns`; ts in microseconds) of the list in
    docs/expressions.md, which gives key, opened_at, closes_at (microseconds, both ends closed) and `results`.
    `{<kind>_reach}` stands for that row's reach in microseconds, `{forever}` for an open end. None: each row is its
    own result.
    results: column -> kind; a TIMESTAMP is microseconds in `resolve` and a timestamp when served.
    hide: which results are not served (they may still be needed to cover their rows).
    alert: what is said of rows through Kafka, where each row is its own result.
    """

    key: str
    rows: Mapping[str, Row]
    resolve: str | None = None
    results: Mapping[str, Kind] = field(default_factory=dict)
    hide: str | None = None
    alert: Alert | None = None
    version: int = 1
    owner: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of an InnerJoin: the key, a BIGINT or STRING expression, column -> expression, and which facts count."""

    of: str
    key: str
    columns: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None


@dataclass(frozen=True, kw_only=True)
class InnerJoin:
    """A row per fact of the right side that has one of the left side, whichever came first, however much later.

    key: served name of the key. left: of several facts of a key the newest counts, by occurred_at; over a changelog
    none once it is deleted. right: events, each of them a row. Served beside their columns: `joined_at`, the later one
    of both times. It is short for a Sequence.
    """

    key: str
    left: Side
    right: Side
    version: int = 1
    owner: str
    description: str


Declaration = Aggregate | Sequence


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A weighted sum of features, plus an intercept; above 0 is a yes.

    scores: the Sequence whose results are scored; the model is trained on the same columns.
    features: DOUBLE columns of that view.
    label_of, label_key: the event type that says yes, and its field with the key of the result.
    promoted_as: the event type of promotions: model, model_version, intercept and a weight_<feature> of each feature.
    maturity: how much older than the newest result an example must be, so that its label has come: "10 minutes".
    most_examples: only so many of the newest are used.
    least_f1: the F1 that a first model must reach; later ones are compared with the model in force.
    """

    scores: str
    features: tuple[str, ...]
    label_of: str
    label_key: str
    promoted_as: str
    maturity: str
    most_examples: int = 1_000_000
    least_f1: float = 0.5
    owner: str
    description: str
