"""Trained once a run, promoted once a decision, whatever is tried again; the commands over a Kafka without a broker."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.cli import model as command
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Model, Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.messaging import producer, topics
from spark_jobs.registry.models import BoundModel
from spark_jobs.registry.views import Views
from spark_jobs.training import promotion
from spark_jobs.training.examples import Part
from spark_jobs.training.linear import Weights
from spark_jobs.training.train import Result, train
from tests import scored
from tests.contract_files import records
from tests.fake_kafka import Kafka

NAME = "payments_fraud"


class Broker:
    """`sent`: events taken; away: refuses; deaf: takes them, but the answer is lost."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_away = self.is_deaf = False

    def __call__(self, contract: Contract, event: dict[str, Any]) -> None:
        if self.is_away:
            raise LedgerError("no Kafka")
        self.sent.append(event)
        if self.is_deaf:
            raise LedgerError("no answer")


def abroad(weight: float, intercept: float = -0.5) -> Any:
    """A fit that always gives these weights."""
    return lambda names, part: Weights(intercept, dict.fromkeys(names, 0.0) | {"is_abroad": weight})


def never(names: tuple[str, ...], part: Part) -> Weights:
    raise AssertionError("fitted again")


@pytest.fixture
def model(platform_home: Path) -> BoundModel:
    return scored.bound()


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    """With two published runs of 1,000 payments; every tenth is abroad, and all of those are disputed."""
    opened = ledger.open()
    payments = [(f"p-{i}", i, float(i % 10 == 0)) for i in range(1000)]
    version = scored.write_results([*payments, ("newest", 60 * scored.MINUTE, 0.0)])
    scored.write_disputes({key: 1 for key, _, is_abroad in payments if is_abroad})
    for run_id, cut in (("r1", 5), ("r2", 7)):
        scored.published(opened, run_id, cut, version)
    yield opened
    opened.close()


GOOD, WORSE, AS_GOOD = abroad(1.0), abroad(0.0, intercept=0.5), abroad(2.0)


def in_force(store: Store) -> int | None:
    found = store.model_in_force(NAME)
    return found.version if found else None


def test_the_first_is_promoted_as_a_valid_event(store: Store, model: BoundModel) -> None:
    broker = Broker()
    result = train(store, model, "r1", GOOD, broker)
    assert result.model is not None and result.said == "promoted: F1 1.0000; no model was in force"
    assert result.model.metrics["candidate"]["tp"] == result.model.metrics["examples"]["held_out_yes"] > 0
    assert (in_force(store), result.model.cut, result.model.metrics["drift"]) == (1, 5, None)
    (event,) = broker.sent
    assert (event["model"], event["model_version"], event["weight_is_abroad"]) == (NAME, 1, 1.0)
    decoded = decode(records(model.promotion.topic, [promotion.value(event)]), project_contracts())
    assert (decoded.facts["payments_model_promoted"].num_rows, decoded.rejects.num_rows) == (1, 0)


def test_a_retry_trains_nothing_and_sends_nothing(store: Store, model: BoundModel) -> None:
    broker = Broker()
    first = train(store, model, "r1", GOOD, broker)
    again = train(store, model, "r1", never, broker)
    assert again.said == first.said and again.model is not None and again.model.version == 1
    assert len(broker.sent) == len(store.models(NAME)) == 1


def test_a_worse_one_is_kept_refused_and_nothing_is_sent(store: Store, model: BoundModel) -> None:
    broker = Broker()
    train(store, model, "r1", GOOD, broker)
    result = train(store, model, "r2", WORSE, broker)
    assert result.said.startswith("refused: worse: F1 0.") and in_force(store) == 1 and len(broker.sent) == 1
    assert result.model is not None and result.model.version == 2
    drift = result.model.metrics["drift"]
    assert drift["psi"] == 0, "the model in force sees the same payments as at its training"
    assert drift["disagreement"] == pytest.approx(0.9, abs=0.05)


def test_one_as_good_with_other_weights_is_promoted(store: Store, model: BoundModel) -> None:
    broker = Broker()
    train(store, model, "r1", GOOD, broker)
    assert train(store, model, "r2", AS_GOOD, broker).said.startswith("promoted: not worse: F1 1.0000")
    assert in_force(store) == 2


@pytest.mark.parametrize("fault", ["is_away", "is_deaf"])
def test_a_decision_that_was_not_sent_is_sent_by_the_retry_with_the_same_bytes(
    store: Store, model: BoundModel, fault: str
) -> None:
    broker = Broker()
    setattr(broker, fault, True)
    with pytest.raises(LedgerError):
        train(store, model, "r1", GOOD, broker)
    assert in_force(store) is None and len(store.models(NAME)) == 1
    setattr(broker, fault, False)
    train(store, model, "r1", never, broker)
    assert in_force(store) == 1 and len({promotion.value(event) for event in broker.sent}) == 1


def test_an_unfinished_decision_is_finished_before_the_next_one(store: Store, model: BoundModel) -> None:
    broker = Broker()
    broker.is_away = True
    with pytest.raises(LedgerError):
        train(store, model, "r1", GOOD, broker)
    with pytest.raises(LedgerError, match="decision 1 about payments_fraud is unfinished"):
        store.intend_model_promotion(NAME, 1, "too early")
    broker.is_away = False
    train(store, model, "r2", AS_GOOD, broker)
    assert [event["model_version"] for event in broker.sent] == [1, 2]


def test_by_hand_too_an_unfinished_decision_is_finished_first(store: Store, model: BoundModel) -> None:
    broker = Broker()
    train(store, model, "r1", GOOD, broker)
    broker.is_away = True
    with pytest.raises(LedgerError):
        train(store, model, "r2", AS_GOOD, broker)
    broker.is_away = False
    promotion.promote(store, model, 1, "by hand", broker)
    assert [event["model_version"] for event in broker.sent] == [1, 2, 1] and in_force(store) == 1


def test_the_way_back_is_a_new_decision_with_a_new_event(store: Store, model: BoundModel) -> None:
    broker = Broker()
    for run_id, fit in (("r1", GOOD), ("r2", AS_GOOD)):
        train(store, model, run_id, fit, broker)
    promotion.promote(store, model, 1, "by hand", broker)
    assert in_force(store) == 1
    first, _, back = broker.sent
    assert first["event_id"] != back["event_id"]
    same = {name: value for name, value in first.items() if name not in ("event_id", "occurred_at")}
    assert same.items() <= back.items()
    assert train(store, model, "r2", never, broker).model is not None and in_force(store) == 1


def test_weights_that_the_event_cannot_say_are_neither_recorded_nor_decided(store: Store, model: BoundModel) -> None:
    with pytest.raises(LedgerError, match=r"cannot say \$\.weight_is_abroad"):
        train(store, model, "r1", abroad(1e7), Broker())
    assert store.models(NAME) == [] and store.model_promotions(NAME) == []


def test_by_hand_too_weights_that_the_event_cannot_say_are_not_decided(store: Store, model: BoundModel) -> None:
    """As when the contract has changed since."""
    kept = {"weights": asdict(abroad(1e7)(scored.FEATURES, None)), "metrics": {}}
    store.record_model(Model(model=NAME, run_id="r1", cut=5, seconds=0, is_accepted=False, reason="", **kept))
    with pytest.raises(LedgerError, match="cannot say"):
        promotion.promote(store, model, 1, "by hand", Broker())
    assert store.model_promotions(NAME) == []


def test_only_a_published_run_trains_and_one_with_nothing_new_says_so(store: Store, model: BoundModel) -> None:
    with pytest.raises(LedgerError, match="run r9 is not known"):
        train(store, model, "r9", never, Broker())
    store.begin_run(Run(run_id="r3", cut=8))
    with pytest.raises(LedgerError, match="run r3 is active after plan: training follows `tidemark batch publish"):
        train(store, model, "r3", never, Broker())
    store.progress("r3", "publish", nothing_new=True)
    assert train(store, model, "r3", never, Broker()) == Result(None, "run r3 had nothing new: nothing is trained")
    scored.published(store, "r4", 9, scored.write_results([("p-1", 0, 0.0)]))
    assert train(store, model, "r4", never, Broker()).said.startswith("nothing is trained: 0 yes and 0 no")


@pytest.fixture
def kafka(store: Store, model: BoundModel, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    one = Kafka()
    monkeypatch.setattr(producer, "connected", lambda: one)
    monkeypatch.setattr(topics, "create", lambda of, known=(): [])
    views = Views((model.view,))
    monkeypatch.setattr(command, "project_views", lambda: views)
    monkeypatch.setattr(command, "_fit", GOOD)
    return one


def tidemark(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ("model", *arguments))
    return done.exit_code, done.output


def test_the_commands_train_list_show_and_promote(kafka: Kafka) -> None:
    code, said = tidemark("train", NAME, "--run-id", "r1")
    assert code == 0 and f"{NAME}: promoted: F1 1.0000; no model was in force" in said
    ((key, value, headers),) = [record for log in kafka.log.values() for record in log]
    assert (key, dict(headers)) == (NAME.encode(), {"schema_version": b"1", "producer": b"tidemark-models"})
    assert json.loads(value)["model_version"] == 1
    (row,) = json.loads(tidemark("list", "--json")[1])
    assert (row["model"], row["version"], row["state"], row["f1"]) == (NAME, 1, "in force", "1.000")
    code, said = tidemark("show", NAME)
    assert code == 0 and "is_abroad" in said and "let pass" in said and "version 1: in force" in said
    code, said = tidemark("promote", NAME, "1")
    assert code == 0 and "decision 2" in said and len([r for log in kafka.log.values() for r in log]) == 2


def test_what_there_is_not_is_refused(kafka: Kafka) -> None:
    assert tidemark("show", NAME) == (1, f"tidemark: model {NAME} was never trained; {SEE}\n")
    assert tidemark("promote", NAME, "4") == (1, f"tidemark: there is no version 4 of model {NAME}; {LIST}\n")
    assert tidemark("train", "x", "--run-id", "r1") == (1, f"tidemark: no model is called x; known are {NAME}\n")
    assert tidemark("train", NAME)[0] == 2


def test_a_broker_that_is_away_is_said_and_the_decision_stays_an_intent(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(of: object, known: object = ()) -> list[str]:
        raise topics.TopicsError("no Kafka at 127.0.0.1:1; `tidemark up` starts it")

    monkeypatch.setattr(topics, "create", away)
    code, said = tidemark("train", NAME, "--run-id", "r1")
    assert code == 1 and "the promotion is not in Kafka: no Kafka at 127.0.0.1:1" in said and "Traceback" not in said
    assert [row["state"] for row in json.loads(tidemark("list", "--json")[1])] == ["intent"]


SEE = "`tidemark model list` shows those that were"
LIST = "`tidemark model list` shows them"
