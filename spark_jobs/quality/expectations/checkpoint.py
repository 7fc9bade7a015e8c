"""Great Expectations at work: suites over pandas or Spark DataFrames, their results, and the Data Docs.

(Suite, DataFrame) -> validation -> Verdict; all results -> a static site under `settings().data_docs`.
A table is looked at twice only where something fails: for yes or no, then in Spark for the offending rows.
"""

import logging
import os
import shutil
import warnings
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.settings import settings

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

SITE = "tidemark"
WHOLE = "audited rows"
RUNS_KEPT = 30
SAMPLES = 5


@dataclass(frozen=True)
class Failure:
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


class Checkpoint:
    """One run of suites. GX keeps its files under `home/gx`; results of the last runs stay in the docs."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.at = datetime.now(UTC)
        self.context = _context()
        self._kept = set[str]()

    @cached_property
    def _memory(self) -> Any:
        return self.context.data_sources.add_or_update_pandas("memory")

    @cached_property
    def _spark(self) -> Any:
        """Made late, as it starts a Spark session where there is none."""
        return self.context.data_sources.add_or_update_spark("spark", persist=False)

    def glance(self, suite: Suite, rows: "pd.DataFrame") -> Verdict:
        """Check rows in memory by the suite, without looking for the offending rows."""
        return _verdict(suite, self._run(suite, self._memory, rows, "BOOLEAN_ONLY"))

    def validate(self, suite: Suite, rows: "DataFrame", *, is_suspect: bool) -> Verdict:
        """Check `rows` (columns of the suite) by the suite, and name those that break an expectation.

        is_suspect: something is wrong with them, as far as is known; so they are not first asked for yes or no.
        """
        if not is_suspect and (result := self._run(suite, self._spark, rows, "BOOLEAN_ONLY")).success:
            return _verdict(suite, result)
        detailed = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES}
        return _verdict(suite, self._run(suite, self._spark, rows, detailed))

    def _run(self, suite: Suite, source: Any, rows: Any, result_format: Any) -> Any:
        from great_expectations import ExpectationSuite
        from great_expectations.validator.v1_validator import Validator

        copies = [copy(expectation) for expectation in suite.expectations]  # GX binds each to one suite for good
        stated = ExpectationSuite(name=suite.table, expectations=copies)
        validator = Validator(_data(source, suite.table), result_format, {"dataframe": rows})
        with warnings.catch_warnings(action="ignore"):
            result = validator.validate_expectation_suite(stated)
        self._keep(stated, result)
        return result

    def _keep(self, suite: Any, result: Any) -> None:
        """Keep a suite and its result for the pages.

        GX's validation definition does so too, and for that reads and writes the suite several times.
        """
        from great_expectations import RunIdentifier
        from great_expectations.data_context.types.resource_identifiers import (
            ExpectationSuiteIdentifier,
            ValidationResultIdentifier,
        )

        if suite.name not in self._kept:
            self.context.suites.add_or_update(suite)
            self._kept.add(suite.name)
        run, name = RunIdentifier(run_name=self.run_id, run_time=self.at), ExpectationSuiteIdentifier(suite.name)
        result.meta |= {"run_id": run, "validation_time": self.at}
        self.context.validation_results_store.set(ValidationResultIdentifier(name, run, result.batch_id), result)

    def docs(self, table: str | None) -> Path:
        """Build the Data Docs; the page of this run's verdict on the table, or the index where there is none."""
        _forget_old_runs()
        suites, results = self.context.expectations_store, self.context.validation_results_store
        new = [*suites.list_keys(), *(key for key in results.list_keys() if key.run_id.run_name == self.run_id)]
        self.context.build_data_docs(site_names=[SITE], resource_identifiers=new)
        pages, index = _pages(), settings().data_docs / "index.html"
        if table is None:
            return index
        return max((pages / table.replace(".", "/") / self.run_id).rglob("*.html"), default=index)


def _data(source: Any, table: str) -> Any:
    known = {asset.name: asset for asset in source.assets}
    if table in known:
        return known[table].get_batch_definition(WHOLE)
    return source.add_dataframe_asset(table).add_batch_definition_whole_dataframe(WHOLE)


def _context() -> Any:
    """A context that keeps suites and results in files: no analytics, no progress bars, one local site.

    GX's own context of files would write all of its configuration again for each table.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults
    from great_expectations.execution_engine import pandas_execution_engine

    pandas_execution_engine.HASH_THRESHOLD = 0  # else it hashes all rows in memory, for a mark that nobody reads
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False))
    kept = {config.expectations_store_name: "expectations", config.validation_results_store_name: "validations"}
    for name, folder in kept.items():
        config.stores[name]["store_backend"] = _in_files(_home() / folder)
    config.data_docs_sites = {
        SITE: {
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "show_how_to_buttons": False,
            "store_backend": _in_files(settings().data_docs),
        }
    }
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context


def _home() -> Path:
    return settings().home / "gx"


def _pages() -> Path:
    return settings().data_docs / "validations"


def _in_files(folder: Path) -> dict[str, str]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}


def _forget_old_runs() -> None:
    """Remove the results, and the pages, of all but the last runs of each table."""
    for table in (path for path in (_home() / "validations").glob("*/*") if path.is_dir()):
        runs = sorted(table.iterdir(), key=lambda run: run.stat().st_mtime, reverse=True)
        for run in runs[RUNS_KEPT:]:
            shutil.rmtree(run)
            shutil.rmtree(_pages() / table.parent.name / table.name / run.name, ignore_errors=True)


def _verdict(suite: Suite, result: Any) -> Verdict:
    """Anything but a clear yes is a failure."""
    failures = tuple(_failure(result) for result in result.results if not result.success)
    if len(result.results) != len(suite.expectations):
        missing = len(suite.expectations) - len(result.results)
        failures += (Failure("critical", f"{missing} expectations have no result"),)
    return Verdict(suite.table, failures)


def _failure(result: Any) -> Failure:
    config = result.expectation_config
    severity = str(getattr(config.severity, "value", config.severity) or "critical")
    return Failure(severity, f"{_sentence(config)}: {_found(result)}")


def _sentence(config: Any) -> str:
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
