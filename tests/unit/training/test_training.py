"""Examples, measures, drift and the decision, without Spark: each against what can be counted by hand."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from spark_jobs.training import examples
from spark_jobs.training.evaluation import Confusion, Evaluated, Histogram, confusion, decide, disagreement
from spark_jobs.training.examples import Examples
from spark_jobs.training.fit import FitError, best_iteration
from spark_jobs.training.linear import Weights
from tests import scored

NAMES = scored.FEATURES
NOW = 1_767_225_600_000_000


def read(folder: Path, payments: list[scored.Payment], disputes: dict[str, int], cut: int = 9) -> Examples:
    version = scored.write_results(payments)
    if disputes:
        scored.write_disputes(disputes)
    return examples.read(scored.bound(), version, cut)


def payments(n: int, at: int = NOW) -> list[scored.Payment]:
    """n payments and, so that they are mature, one that is much newer; a tenth of them abroad."""
    return [(f"p-{i}", at + i, float(i % 10 == 0)) for i in range(n)] + [("newest", at + 60 * scored.MINUTE, 0.0)]


def is_held_out(key: str) -> bool:
    return int(hashlib.md5(key.encode()).hexdigest()[:8], 16) % examples.ONE_OF == 0


def test_the_split_follows_from_the_key_alone_and_takes_about_a_fifth(platform_home: Path) -> None:
    one = read(platform_home, payments(1000), {})
    keys = [key for key, *_ in payments(1000)[:-1]]
    assert len(one.held_out) == sum(map(is_held_out, keys)) and len(one.held_out) + len(one.training) == 1000
    assert 150 < len(one.held_out) < 250


def test_a_payment_stays_on_its_side_of_the_split_when_others_come(platform_home: Path) -> None:
    """Each has an amount of its own here, by which it is found again."""
    some = [(f"p-{i}", NOW + i, float(i)) for i in range(300)] + payments(0)
    more = some + [(f"q-{i}", NOW + i, float(1000 + i)) for i in range(300)]
    before, after = read(platform_home, some, {}), read(platform_home, more, {})
    column = NAMES.index("is_abroad")

    def numbers(one: Examples) -> tuple[set[float], set[float]]:
        return set(one.training.features[:, column]), set(one.held_out.features[:, column])

    (training, held_out), (more_training, more_held_out) = numbers(before), numbers(after)
    assert training < more_training and held_out < more_held_out
    assert not more_training & more_held_out


def test_a_payment_is_a_yes_if_it_is_disputed_up_to_the_cut(platform_home: Path) -> None:
    one = read(platform_home, payments(1000), {"p-0": 9, "p-1": 10, "p-2": 1, "stranger": 1}, cut=9)
    assert one.training.yes + one.held_out.yes == 2


def test_a_payment_is_an_example_from_its_maturity_on(platform_home: Path) -> None:
    old, exact, young = (NOW - minutes * scored.MINUTE for minutes in (4, 3, 2))
    one = read(platform_home, [("a", old, 0.0), ("b", exact, 0.0), ("c", young, 0.0), ("d", NOW, 0.0)], {"c": 1})
    assert (len(one.training) + len(one.held_out), one.training.yes + one.held_out.yes) == (2, 0)


def test_without_enough_of_both_classes_in_both_parts_nothing_can_be_learnt(platform_home: Path) -> None:
    every = payments(1000)
    assert "0 yes" in str(read(platform_home, every, {}).lacking())
    training = {key: 1 for key, *_ in every if not is_held_out(key)}
    assert "to train on" in str(read(platform_home, every, training).lacking()), "none is honest"
    few = dict(list(training.items())[:50])
    assert "0 yes and" in (said := str(read(platform_home, every, few).lacking())) and "held out" in said
    held_out = {key: 1 for key, *_ in every[:-1] if is_held_out(key)}
    enough = few | dict(list(held_out.items())[: examples.LEAST_OF_A_CLASS])
    assert read(platform_home, every, enough).lacking() is None
    del enough[next(iter(held_out))]
    assert read(platform_home, every, enough).lacking() is not None
    assert read(platform_home, [], {}).lacking() is not None


def test_the_confusion_table_and_its_measures_by_hand() -> None:
    found = confusion(np.array([2.0, 0.1, 3.0, 0.0, -1.0, -2.0]), np.array([True, True, False, True, False, False]))
    assert found == Confusion(tp=2, fp=1, fn=1, tn=2), "0 is not above 0"
    assert (found.precision, found.recall, found.f1) == (2 / 3, 2 / 3, 2 / 3)
    uneven = Confusion(tp=8, fp=2, fn=24, tn=66)
    assert (uneven.precision, uneven.recall) == (0.8, 0.25)
    assert uneven.f1 == pytest.approx(2 * 0.8 * 0.25 / (0.8 + 0.25))
    nothing = Confusion(tp=0, fp=0, fn=0, tn=5)
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


def test_a_score_is_the_weighted_sum_and_unknown_features_have_no_part_in_it() -> None:
    weights = Weights.rounded(-1.00000049, ("a", "b"), [2.0, -0.0])
    assert Weights(**json.loads(json.dumps(asdict(weights)))) == weights, "as the ledger keeps them"
    assert weights.scores(("b", "a", "c"), np.array([[1.0, 3.0, 7.0], [0.0, 0.0, 1.0]])).tolist() == [5.0, -1.0]
    assert str(weights.of["b"]) == "0.0"


def evaluated(f1_of_ten: int, version: int | None = None, weight: float = 1.0, cut: int = 5) -> Evaluated:
    """tp of ten; nothing else flagged."""
    scores, confused = np.zeros(0), Confusion(f1_of_ten, 0, 10 - f1_of_ten, 90)
    return Evaluated(Weights(0.0, {"a": weight}), scores, confused, cut, version)


def test_a_worse_candidate_is_refused_with_both_measures() -> None:
    decision = decide(evaluated(7), evaluated(8, version=3, weight=2.0), 0.5)
    assert not decision.is_promoted
    assert decision.reason == "worse: F1 0.8235, of version 3, in force, 0.8889"


def test_a_better_one_is_promoted_and_so_is_one_as_good() -> None:
    assert decide(evaluated(9), evaluated(8, version=3, weight=2.0), 0.5).is_promoted
    assert decide(evaluated(8), evaluated(8, version=3, weight=2.0), 0.5).is_promoted


def test_the_same_weights_are_not_promoted_again() -> None:
    decision = decide(evaluated(8), evaluated(8, version=3), 0.5)
    assert (decision.is_promoted, decision.reason) == (False, "it has the weights of version 3, which is in force")


def test_a_first_model_has_to_reach_what_its_file_says() -> None:
    assert decide(evaluated(4), None, least_f1=0.5).is_promoted
    refused = decide(evaluated(3), None, least_f1=0.5)
    assert (refused.is_promoted, refused.reason) == (False, "F1 0.4615: a first model needs 0.5")


def test_the_way_to_the_weights_ends_where_the_loss_was_least() -> None:
    assert best_iteration([1.0, 0.5, 0.2]) is None
    assert best_iteration([1.0, 0.2, 0.201]) is None
    assert best_iteration([1.0, 0.02, 0.019, 0.873]) == 2
    assert best_iteration([1.0, 0.02, float("nan")]) == 1
    for hopeless in ([], [1.0, 1.5], [1.0, float("nan")]):
        with pytest.raises(FitError, match="nothing better than its start"):
            best_iteration(hopeless)


def test_an_older_cut_never_takes_the_place_of_a_newer_one() -> None:
    assert not decide(evaluated(9, cut=4), evaluated(8, version=3, weight=2.0, cut=5), 0.5).is_promoted


def test_the_stability_index_is_0_for_the_same_scores_and_grows_with_their_distance() -> None:
    rng = np.random.default_rng(1)
    then = rng.normal(0, 1, 10_000)
    histogram = Histogram(**json.loads(json.dumps(asdict(Histogram.of(then)))))
    assert histogram.psi(then) == 0
    found = [histogram.psi(rng.normal(shift, 1, 10_000)) for shift in (0, 0.2, 0.5, 1, 3)]
    assert found == sorted(found) and found[0] < 0.01 and found[-1] > 0.25


def test_the_stability_index_by_hand() -> None:
    histogram = Histogram(edges=(0.0,), shares=(0.5, 0.5))
    now = np.array([-1.0, 1.0, 1.0, 1.0])
    assert histogram.psi(now) == pytest.approx(-0.25 * np.log(0.5) + 0.25 * np.log(1.5))


def test_equal_scores_and_empty_bins_have_a_finite_index() -> None:
    histogram = Histogram.of(np.ones(50))
    assert (histogram.edges, histogram.shares, histogram.psi(np.ones(9))) == ((1.0,), (1.0, 0.0), 0)
    assert 1 < histogram.psi(np.full(9, 2.0)) < 100


def test_models_disagree_on_what_one_of_them_flags() -> None:
    assert disagreement(np.array([1.0, -1.0, 1.0, 0.0]), np.array([2.0, 1.0, -1.0, -5.0])) == 0.5
