"""A wrong model file is refused when it is loaded, with the file, the reason and a hint."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.registry.models import BoundModel, load_models
from spark_jobs.registry.views import RegistryError, Views, project_views
from tests import scored


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Views:
    return scored.views()


GOOD = {
    "scores": '"payments_scored"',
    "features": repr(scored.FEATURES),
    "label_of": '"payment_disputed"',
    "label_key": '"payment_id"',
    "promoted_as": '"payments_model_promoted"',
    "maturity": '"10 minutes"',
}


def load(folder: Path, views: Views, **changed: str) -> BoundModel:
    stated = ", ".join(f"{name}={value}" for name, value in (GOOD | changed).items())
    head = "from spark_jobs.registry.models import LinearModel\n"
    (folder / "fraud.py").write_text(f'{head}model = LinearModel({stated}, owner="o", description="d")')
    return load_models(views, folder=folder)["fraud"]


def test_the_projects_models_load_over_its_views() -> None:
    known = load_models(project_views())
    assert list(known) == ["payments_fraud"]
    assert known["payments_fraud"].maturity == 3 * scored.MINUTE


def test_the_module_checks_them_by_hand() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "spark_jobs.registry"], check=True, capture_output=True, text=True
    ).stdout
    assert said.splitlines()[-1].startswith("payments_fraud (payments; of payments_scored): ")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"scores": '"payments_scores"'}, "there is no Sequence payments_scores to score (known are payments_scored)"),
        ({"features": '("thousand",)'}, "payments_scored has no DOUBLE column thousand (those are thousands, is_small"),
        ({"features": "()"}, "features are missing or repeated"),
        ({"features": '("is_small", "is_small")'}, "features are missing or repeated"),
        ({"features": '("is_small",)'}, "differ in weight_is_abroad, weight_is_electronics, weight_is_large"),
        ({"promoted_as": '"payment_alerted"'}, "payment_alerted and the features differ in amount_cents, card_id"),
        ({"promoted_as": '"nothing"'}, "there is no event type nothing"),
        ({"label_of": '"nothing"'}, "there is no event type nothing"),
        ({"label_key": '"card_id"'}, "payment_disputed has no such key card_id (`label_key` is a required STRING"),
        ({"maturity": '"soon"'}, "maturity: 'soon' is no duration"),
        ({"scores": '"payments_scored", speed="high"'}, "it does not import: TypeError"),
    ],
)
def test_a_wrong_one_is_refused(tmp_path: Path, views: Views, changed: dict[str, str], reason: str) -> None:
    with pytest.raises(RegistryError) as refused:
        load(tmp_path, views, **changed)
    assert str(refused.value).startswith(f"{tmp_path / 'fraud.py'}: ") and reason in str(refused.value)


def test_a_file_needs_a_model_and_a_plain_name(tmp_path: Path, views: Views) -> None:
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(RegistryError, match="it has no `model`"):
        load_models(views, folder=tmp_path)
    (tmp_path / "empty.py").rename(tmp_path / "Empty.py")
    with pytest.raises(RegistryError, match="Empty is no name of a model"):
        load_models(views, folder=tmp_path)
