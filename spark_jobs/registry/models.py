"""Models that the batch layer trains: plain data in `<name>.py` of the models' folder, joined to views and event types.

model files + views + contracts -> load_models() -> BoundModel by name, or RegistryError (file, reason, hint).
Check them all: `python -m spark_jobs.registry`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract, Contracts
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.definitions.spec import LinearModel
from spark_jobs.expressions.arrow_types import kind_of
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.literals import duration
from spark_jobs.expressions.source import NAME
from spark_jobs.registry.views import RegistryError, Views, declared_in, files_of
from spark_jobs.settings import settings

WEIGHT = "weight_"
PROMOTION = {"model": "STRING", "model_version": "BIGINT", "intercept": "DOUBLE"}


@dataclass(frozen=True)
class BoundModel:
    """A checked model. maturity: in microseconds; promotion: the contract of its promotions."""

    name: str
    declaration: LinearModel
    view: SequenceView
    maturity: int
    promotion: Contract


def load_models(views: Views, folder: Path | None = None) -> Mapping[str, BoundModel]:
    """Read and check every model file of `folder`, by default the settings'. Raises RegistryError."""
    models = {}
    for file in files_of(folder or settings().models_folder):
        try:
            models[file.stem] = _bound(file, views, project_contracts())
        except Refused as error:
            raise RegistryError(file, None, re.sub(r"\s+", " ", error.reason), error.hint) from error
    return models


def _bound(file: Path, views: Views, known: Contracts) -> BoundModel:
    """The model of one file. Raises Refused."""
    declared = _declared(file)
    view = _scored(declared, views)
    _check_label(declared, known, view)
    return BoundModel(file.stem, declared, view, _maturity(declared), _promotion(declared, known))


def _declared(file: Path) -> LinearModel:
    if not NAME.fullmatch(file.stem):
        raise Refused(f"{file.stem} is no name of a model", "lower case letters, digits, single _")
    try:
        declared = declared_in(file, "model")
    except Exception as error:
        raise Refused(f"it does not import: {error!r}", "docs/models.md has an example") from error
    if not isinstance(declared, LinearModel):
        raise Refused("it has no `model`", "write `model = LinearModel(...)`")
    return declared


def _scored(declared: LinearModel, views: Views) -> SequenceView:
    view = views.by_name.get(declared.scores)
    if not isinstance(view, SequenceView):
        known = ", ".join(name for name, view in views.by_name.items() if isinstance(view, SequenceView))
        raise Refused(f"there is no Sequence {declared.scores} to score", f"known are {known}")
    doubles = [name for name, kind in view.result_kinds.items() if kind == "DOUBLE"]
    for feature in declared.features:
        if feature not in doubles:
            raise Refused(f"{view.id} has no DOUBLE column {feature}", f"those are {', '.join(doubles)}")
    if not declared.features or len(set(declared.features)) < len(declared.features):
        raise Refused("features are missing or repeated", "name each feature once")
    return view


def _check_label(declared: LinearModel, known: Contracts, view: SequenceView) -> None:
    if declared.label_of not in known:
        raise Refused(f"there is no event type {declared.label_of}", "`label_of` names one of schemas/events")
    if _required(known.of(declared.label_of)).get(declared.label_key) != view.result_kinds["key"]:
        wanted = f"`label_key` is a required {view.result_kinds['key']} field, as the key of {view.id}"
        raise Refused(f"{declared.label_of} has no such key {declared.label_key}", wanted)


def _promotion(declared: LinearModel, known: Contracts) -> Contract:
    if declared.promoted_as not in known:
        raise Refused(f"there is no event type {declared.promoted_as}", "`promoted_as` names one of them")
    contract = known.of(declared.promoted_as)
    actual = _required(contract)
    wanted = PROMOTION | {f"{WEIGHT}{feature}": "DOUBLE" for feature in declared.features}
    if differing := sorted({name for name, _ in actual.items() ^ wanted.items()}):
        hint = f"its required fields are {', '.join(wanted)}"
        raise Refused(f"{declared.promoted_as} and the features differ in {', '.join(differing)}", hint)
    return contract


def _required(contract: Contract) -> dict[str, str]:
    return {field.name: kind_of(field.arrow) for field in contract.fields if field.required}


def _maturity(declared: LinearModel) -> int:
    try:
        return duration(declared.maturity)
    except Refused as error:
        raise Refused(f"maturity: {error.reason}", 'such as "10 minutes"') from error
