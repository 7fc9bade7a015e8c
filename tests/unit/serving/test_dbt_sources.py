"""dbt's sources come from the views, and `tidemark dbt` runs dbt over one pin."""

import re
import subprocess
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from spark_jobs.cli import dbt as command
from spark_jobs.publication import pins
from spark_jobs.registry.views import load_views, project_views
from spark_jobs.serving import dbt_sources
from spark_jobs.settings import ROOT, settings
from spark_jobs.testing import cases

MODELS = sorted((settings().dbt_folder / "models").rglob("*.sql"))
MARTS = [model for model in MODELS if "marts" in model.parts]


def tables(text: str) -> dict[str, dict[str, Any]]:
    (source,) = yaml.safe_load(text)["sources"]
    return {table["name"]: table for table in source["tables"]}


def test_the_committed_sources_are_those_of_the_views() -> None:
    assert dbt_sources.is_current(project_views()), "run `tidemark dbt sources` and commit dbt/models/sources.yml"


def test_every_view_is_a_source_with_exactly_the_columns_that_it_serves() -> None:
    found = tables(dbt_sources.render(project_views()))
    assert set(found) == set(project_views().served)
    for case in cases.cases(ROOT / "tests/views"):
        names = [column["name"] for column in found[case.view]["columns"]]
        assert all(list(row) == names for row in case.expected), case.view


def test_the_sources_read_the_pin_and_nothing_else() -> None:
    (source,) = yaml.safe_load(dbt_sources.render(project_views()))["sources"]
    assert source["schema"] == "{{ env_var('TIDEMARK_PIN') }}"


def test_a_new_view_is_a_source_without_another_edit(tmp_path: Path) -> None:
    (tmp_path / "orders_by_store.py").write_text(
        "from spark_jobs.definitions.api import Aggregate, Count\n"
        "view = Aggregate(of='order_placed', by={'store_id': 'store_id'}, measures={'orders': Count()},\n"
        "    owner='commerce', description='Orders per store: all of them.')\n"
    )
    table = tables(dbt_sources.render(load_views(tmp_path)))["orders_by_store"]
    assert table["description"] == "Orders per store: all of them."
    assert [column["name"] for column in table["columns"]] == ["store_id", "orders"]


def test_writing_changes_the_file_only_when_it_is_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_sources, "sources_file", lambda: tmp_path / "sources.yml")
    assert [dbt_sources.write(project_views()) for _ in range(2)] == [True, False]


def test_check_says_how_to_bring_the_sources_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "sources.yml"
    stale.write_text("version: 2\n")
    monkeypatch.setattr(dbt_sources, "is_current", lambda views: stale.read_text() == dbt_sources.render(views))
    refused = CliRunner().invoke(command.dbt, ["sources", "--check"])
    assert refused.exit_code == 1 and "tidemark dbt sources" in refused.output
    stale.write_text(dbt_sources.render(project_views()))
    assert CliRunner().invoke(command.dbt, ["sources", "--check"]).exit_code == 0


class Dbt:
    """Stands where dbt and the Thrift server are: notes what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
        self.arguments: list[str] = []
        self.environment: Mapping[str, str] = {}
        self.code = code

        @contextmanager
        def nothing(*_: object) -> Any:
            yield None

        def run(arguments: list[str], env: Mapping[str, str], **others: object) -> SimpleNamespace:
            assert isinstance(arguments, list) and not others.get("shell")
            self.arguments, self.environment = arguments, env
            target = Path(arguments[arguments.index("--target-path") + 1])
            target.mkdir(parents=True)
            (target / "static_index.html").write_text("the documentation")
            return SimpleNamespace(returncode=self.code)

        monkeypatch.setattr(command, "ledger_step", nothing)
        monkeypatch.setattr(command, "thrift", nothing)
        monkeypatch.setattr(pins, "create", lambda *given, **_: SimpleNamespace(name=pins.checked(given[3])))
        monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.parametrize("given", ["dbt_ab12", "pin_dbt_ab12"])
def test_dbt_reads_the_pin_that_it_is_given(
    platform_home: Path, with_passwords: None, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    called = Dbt(monkeypatch)
    done = CliRunner().invoke(command.dbt, ["build", "--pin", given, "--select", "market_days+; id"])
    assert done.exit_code == 0
    assert called.arguments[1:4] == ["build", "--select", "market_days+; id"]
    assert called.environment["TIDEMARK_PIN"] == "pin_dbt_ab12"
    assert called.environment["TIDEMARK_THRIFT_PORT"] == "19000"


def test_without_a_pin_one_is_made(platform_home: Path, with_passwords: None, monkeypatch: pytest.MonkeyPatch) -> None:
    called = Dbt(monkeypatch)
    assert CliRunner().invoke(command.dbt, ["build"]).exit_code == 0
    assert re.fullmatch(r"pin_dbt_\d{8}_\d{6}", called.environment["TIDEMARK_PIN"])


@pytest.mark.parametrize("code", [1, 2])
def test_the_exit_code_is_that_of_dbt(
    platform_home: Path, with_passwords: None, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    Dbt(monkeypatch, code)
    for step in ("build", "docs"):
        assert CliRunner().invoke(command.dbt, [step, "--pin", "x"]).exit_code == code
        assert not (platform_home / "dbt/docs/index.html").exists()
        (platform_home / "dbt/target/static_index.html").unlink()
        (platform_home / "dbt/target").rmdir()


def test_the_documentation_is_put_where_airflow_serves_it(
    platform_home: Path, with_passwords: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Dbt(monkeypatch)
    assert CliRunner().invoke(command.dbt, ["docs", "--pin", "x"]).exit_code == 0
    assert (platform_home / "dbt/docs/index.html").read_text() == "the documentation"


def test_every_mart_has_its_twin_with_description_tests_and_a_unit_test() -> None:
    assert {model.parent.name for model in MARTS} == {"flights", "market"}
    for model in MARTS:
        twin = yaml.safe_load(model.with_suffix(".yml").read_text())
        (said,) = twin["models"]
        assert said["name"] == model.stem and said["description"]
        assert any("data_tests" in column for column in said["columns"])
        assert all(unit["model"] == model.stem for unit in twin["unit_tests"])


def test_only_staging_reads_sources_and_only_those_that_exist() -> None:
    read = {model: re.findall(r"source\('serving', '(\w+)'\)", model.read_text()) for model in MODELS}
    assert all(not names for model, names in read.items() if model in MARTS)
    assert {name for names in read.values() for name in names} <= set(project_views().served)


def test_marts_are_delta_tables() -> None:
    marts = yaml.safe_load((settings().dbt_folder / "dbt_project.yml").read_text())["models"]["tidemark"]["marts"]
    assert (marts["+materialized"], marts["+file_format"]) == ("table", "delta")


def test_the_project_is_no_python_package() -> None:
    """It would stand in the way of `import dbt`."""
    assert not list(settings().dbt_folder.rglob("__init__.py"))
