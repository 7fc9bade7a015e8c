"""Great Expectations at work: suites over pandas or Spark DataFrames, their results, and the Data Docs.

(Suite, DataFrame) -> validation -> Verdict; all results -> a static site under `settings().data_docs`.
A table is looked at twice only where something fails: for yes or no, in one pass, then in Spark for the rows that break
the expectations that failed, as that takes a query for each.
"""

import logging
import os
import shutil
import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.quality.expectations.verdicts import SAMPLES, Verdict, key, take_over, verdict
from spark_jobs.settings import settings

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

SITE = "tidemark"
WHOLE = "audited rows"
RUNS_KEPT = 30


@dataclass(frozen=True)
class Glance:
    """A suite's rows, looked at for yes or no. result: GX's, of the last rows; broken: expectations, by their `key`."""

    result: Any
    broken: frozenset[str]


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

    def glance(self, suite: Suite, frames: "Iterable[pd.DataFrame]") -> Glance:
        """Check rows in memory by the suite, a frame at a time, without looking for the offending rows."""
        glance = self._glance(suite, self._memory, frames)
        if not glance.broken:
            self._keep(_stated(suite), glance.result)
        return glance

    def validate(self, suite: Suite, rows: "DataFrame", glance: Glance | None) -> Verdict:
        """Check `rows` (columns of the suite) by the suite, and name those that break an expectation.

        glance: what a look at the same rows in memory gave; None: there was none, so Spark looks first.
        """
        seen = glance or self._glance(suite, self._spark, [rows])
        result = seen.result
        if seen.broken:
            broken = tuple(one for one in suite.expectations if key(one.configuration) in seen.broken)
            detailed = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES}
            take_over(result, self._run(replace(suite, expectations=broken), self._spark, rows, detailed))
        self._keep(_stated(suite), result)
        return verdict(suite, result)

    def _glance(self, suite: Suite, source: Any, frames: Iterable[Any]) -> Glance:
        broken, result = set[str](), None
        for rows in frames:
            result = self._run(suite, source, rows, "BOOLEAN_ONLY")
            good = {key(one.expectation_config) for one in result.results if one.success}
            broken |= {key(one.configuration) for one in suite.expectations} - good
        return Glance(result, frozenset(broken))

    def _run(self, suite: Suite, source: Any, rows: Any, result_format: Any) -> Any:
        from great_expectations.validator.v1_validator import Validator

        validator = Validator(_data(source, suite.table), result_format, {"dataframe": rows})
        with warnings.catch_warnings(action="ignore"):
            return validator.validate_expectation_suite(_stated(suite))

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


def _stated(suite: Suite) -> Any:
    """The suite as GX knows it; GX binds each expectation to one suite for good."""
    from great_expectations import ExpectationSuite

    return ExpectationSuite(name=suite.table, expectations=[copy(one) for one in suite.expectations])


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
