"""What a model file says: plain data. `registry.models` joins it to its view and event types."""

from dataclasses import dataclass


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
