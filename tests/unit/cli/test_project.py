"""A project of one's own: written by `tidemark init`, read from its folder, with nothing of the town loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.settings import FOLDERS, ROOT, TOWN_ORACLE, Settings

EVERYTHING = """
import importlib, pkgutil, sys
from pathlib import Path
import spark_jobs
from spark_jobs.settings import ROOT
from spark_jobs.cli import main
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.registry.models import load_models
from spark_jobs.registry.views import project_views
from spark_jobs.quality.verification.expected import oracle_of_project

views = project_views()
assert sorted(views.served) == ["sales_by_day", "shopping_trips"], views.served
assert sorted(project_contracts().event_types) == ["record_noted", "sale_made"]
assert not load_models(views) and oracle_of_project() is None
for name in main.list_commands(None):
    main.get_command(None, name)
for package in [one.name for one in pkgutil.iter_modules(spark_jobs.__path__)]:
    if package not in ("sample", "views", "models"):
        for file in Path(spark_jobs.__path__[0], package).rglob("[!_]*.py"):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
print(*(name for name in sys.modules if name.startswith(("spark_jobs.sample", "spark_jobs.views."))))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """What `tidemark init` writes."""
    done = CliRunner().invoke(main, ["init", str(tmp_path / "shop")])
    assert done.exit_code == 0, done.output
    return tmp_path / "shop"


def run(code: str, cwd: Path = ROOT, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Python code in a fresh interpreter, with no settings but these."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=others | variables, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_project_of_ones_own_loads_nothing_of_the_town(shop: Path) -> None:
    done = run(EVERYTHING, TIDEMARK_PROJECT=str(shop))
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


def test_what_view_files_import_is_light() -> None:
    code = "import sys, spark_jobs.definitions.api; print({'duckdb', 'pyarrow', 'sqlglot'} & sys.modules.keys())"
    assert run(code).stdout == "set()\n"


def test_the_written_project_keeps_its_own_cases_and_its_sources_are_current(shop: Path) -> None:
    code = f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {str(shop / 'tests')!r}]))"
    done = run(code, TIDEMARK_PROJECT=str(shop))
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    done = run("from spark_jobs.cli import main; main(['dbt', 'sources', '--check'])", TIDEMARK_PROJECT=str(shop))
    assert done.returncode == 0, done.stderr


def test_init_refuses_a_folder_that_is_not_empty_by_name(shop: Path) -> None:
    before = sorted(shop.rglob("*"))
    for taken in (shop, shop / "README.md"):
        done = CliRunner().invoke(main, ["init", str(taken)])
        assert done.exit_code == 1 and f"{taken} is not an empty folder" in done.output
    assert sorted(shop.rglob("*")) == before


def test_a_relative_project_means_the_same_folders_in_every_process(shop: Path, tmp_path: Path) -> None:
    code = "from spark_jobs.settings import *; print(settings().environment('home', 'project', *FOLDERS))"
    done = run(code, tmp_path, TIDEMARK_PROJECT="other/../shop", PYTHONPATH=str(ROOT))
    wanted = {"HOME": ".tidemark", "PROJECT": "", "VIEWS_FOLDER": "views", "SCHEMAS_FOLDER": "schemas/events"}
    wanted |= {"QUALITY_FOLDER": "schemas/quality", "MODELS_FOLDER": "models", "DBT_FOLDER": "dbt"}
    assert done.stdout == repr({f"TIDEMARK_{name}": str(shop / place) for name, place in wanted.items()}) + "\n"


def test_the_towns_commands_oracle_and_layout_are_there_in_this_repository_alone(shop: Path) -> None:
    town, other = Settings(), Settings(project=shop)
    assert (town.oracle, other.oracle) == (TOWN_ORACLE, None)
    assert {getattr(town, name).relative_to(ROOT).parts[0] for name in FOLDERS} == {"spark_jobs", "schemas", "dbt"}
    code = "from spark_jobs.cli import main; main(['generate', '--help'])"
    assert run(code).returncode == 0
    assert "No such command 'generate'" in run(code, TIDEMARK_PROJECT=str(shop)).stderr


def test_b15_a_project_without_marts_has_nothing_to_build(shop: Path) -> None:
    (shop / "dbt/models/marts/shop_days.sql").unlink()
    for step in ("build", "docs"):
        done = run(f"from spark_jobs.cli import main; main(['dbt', {step!r}])", TIDEMARK_PROJECT=str(shop))
        assert done.returncode == 0 and "there is nothing to do" in done.stdout, done.stderr


def test_b15_a_project_without_models_trains_none(shop: Path) -> None:
    code = "from spark_jobs.cli import main; main(['model', 'train', '--run-id', 'r'])"
    done = run(code, TIDEMARK_PROJECT=str(shop))
    assert (done.returncode, done.stdout) == (0, "the project has no models\n"), done.stderr


def test_an_own_oracle_is_found_in_the_projects_folder(shop: Path) -> None:
    (shop / "own_oracle.py").write_text("def make(**given):\n    return 'asked'\n")
    code = "from spark_jobs.quality.verification.expected import oracle_of_project; print(oracle_of_project()())"
    done = run(code, TIDEMARK_PROJECT=str(shop), TIDEMARK_ORACLE="own_oracle:make")
    assert done.stdout == "asked\n", done.stderr
