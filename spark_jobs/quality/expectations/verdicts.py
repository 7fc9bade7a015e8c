"""What Great Expectations found, as verdicts in sentences.

(Suite, GX's result) -> Verdict: one Failure for each expectation without a clear yes
"""

import json
from dataclasses import dataclass
from typing import Any

from spark_jobs.quality.expectations.suites import Suite

SAMPLES = 5
"""Offending values that are named."""


@dataclass(frozen=True)
class Failure:
    """An expectation that does not hold: `critical` stops a run, others are told."""

    severity: str
    said: str


@dataclass(frozen=True)
class Verdict:
    """The verdict of one suite."""

    table: str
    failures: tuple[Failure, ...]

    @property
    def is_critical(self) -> bool:
        return any(failure.severity == "critical" for failure in self.failures)


def key(config: Any) -> str:
    """What tells an expectation from the others of its suite."""
    stated = {name: value for name, value in config.kwargs.items() if name != "batch_id" and value is not None}
    return json.dumps([config.type, stated], sort_keys=True, default=str)


def take_over(result: Any, detailed: Any) -> None:
    """Put the results of some expectations, looked at closely, in the place of what `result` says of them."""
    from great_expectations.validator.validation_statistics import calc_validation_statistics

    closely = {key(one.expectation_config) for one in detailed.results}
    others = [one for one in result.results if key(one.expectation_config) not in closely]
    result.results = [*detailed.results, *others]
    counted = calc_validation_statistics(result.results)
    result.success = counted.success
    result.statistics = {name: value for name, value in counted._asdict().items() if name != "success"}


def verdict(suite: Suite, result: Any) -> Verdict:
    """Anything but a clear yes is a failure."""
    failures = tuple(_failure(result) for result in result.results if not result.success)
    if len(result.results) != len(suite.expectations):
        missing = len(suite.expectations) - len(result.results)
        failures += (Failure("critical", f"{missing} expectations have no result"),)
    return Verdict(suite.table, failures)


def _failure(result: Any) -> Failure:
    config = result.expectation_config
    severity = str(getattr(config.severity, "value", config.severity) or "critical")
    return Failure(severity, f"{sentence(config)}: {_found(result)}")


def sentence(config: Any) -> str:
    """`quantity: values to be between (min_value=1, max_value=100)`."""
    about = {k: v for k, v in config.kwargs.items() if k not in ("batch_id", "column", "row_condition", "severity")}
    column = config.kwargs.get("column")
    what = config.type.removeprefix("expect_").removeprefix("column_").replace("_", " ")
    limits = ", ".join(f"{name}={_short(value)}" for name, value in about.items() if value is not None)
    return f"{f'{column}: ' if column else ''}{what}{f' ({limits})' if limits else ''}"


def _short(value: Any) -> Any:
    """GX turns integers into floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _found(result: Any) -> str:
    info = result.exception_info or {}
    of_metrics = [info] if "raised_exception" in info else [one for one in info.values() if isinstance(one, dict)]
    raised = [one.get("exception_message") for one in of_metrics if one.get("raised_exception")]
    if raised:
        return f"could not be evaluated: {str(raised[0]).splitlines()[0][:300]}"
    detail = result.result or {}
    if "unexpected_count" in detail:
        values = dict.fromkeys(str(v) for v in detail.get("partial_unexpected_list", ()) if v is not None)
        sample = f", such as {', '.join(list(values)[:SAMPLES])}" if values else ""
        return f"{detail['unexpected_count']:,} of {detail.get('element_count', 0):,} rows{sample}"
    return f"found {detail.get('observed_value', 'nothing')}"
