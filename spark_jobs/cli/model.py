"""`tidemark model list | show | promote | train`: what scores, how good it is, since when.

Exit codes as in step.py; where there is too little to learn from, `train` says so and ends with 0.
"""

import json
from collections.abc import Mapping
from functools import partial

import click

from spark_jobs.cli.step import json_option, ledger_step, run_option, show
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.registry.models import BoundModel, load_models
from spark_jobs.registry.views import project_views
from spark_jobs.training import promotion, report
from spark_jobs.training.examples import Part
from spark_jobs.training.fit import fit
from spark_jobs.training.linear import Weights
from spark_jobs.training.train import train as make

IN_FULL = ("run", "reason")
"""What `show` says; a list of it would be too wide."""

send = partial(promotion.send_to_kafka, click.echo)


@click.group()
def model() -> None:
    """Models: trained by the batch layer, evaluated, promoted through the log."""


@model.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every version of every model, the newest first."""
    with ledger_step() as store:
        rows = [report.listed(version, store.model_promotions(version.model)) for version in store.models()]
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=2))
        return
    show("models", [{name: value for name, value in row.items() if name not in IN_FULL} for row in rows])


@model.command("show")
@click.argument("name")
@click.argument("version", type=int, required=False)
def show_(name: str, version: int | None) -> None:
    """Weights, measures and the confusion table of VERSION (default: the one in force, else the newest)."""
    with ledger_step() as store:
        trained = store.model(name, _shown(store, name) if version is None else version)
        promotions = store.model_promotions(name)
    for line in report.lines(trained, promotions):
        click.echo(line)
    show("weights", report.weights(trained))
    show("held-out examples", report.confusion(trained.metrics["candidate"]))
    show("measures", report.compared(trained))


def _shown(store: Store, name: str) -> int:
    in_force, every = store.model_in_force(name), store.models(name)
    if in_force is None and not every:
        raise LedgerError(f"model {name} was never trained; `tidemark model list` shows those that were")
    return (in_force or every[0]).version


@model.command()
@click.argument("name")
@click.argument("version", type=int)
def promote(name: str, version: int) -> None:
    """Score with VERSION from now on, whatever its measures; also the way back to an older one."""
    with ledger_step() as store:
        made = promotion.promote(store, _model(name), version, "by hand", send)
    click.echo(
        f"{name}: version {version} is promoted, decision {made.decision}; it scores what lands after its record"
    )


@model.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@run_option
def train(names: tuple[str, ...], run_id: str) -> None:
    """Train the models (default: all) on what a run has published, evaluate them, promote those that are not worse."""
    with ledger_step() as store:
        models = [_model(name) for name in names] or list(_models().values())
        for bound in models:
            done = make(store, bound, run_id, _fit, send)
            if done.model is not None:
                for line in report.lines(done.model, store.model_promotions(bound.name)):
                    click.echo(line)
            click.echo(f"{bound.name}: {done.said}")
    if not models:
        click.echo("the project has no models")


def _fit(names: tuple[str, ...], part: Part) -> Weights:
    """In a session of its own, which a run without anything to learn from never starts."""
    from spark_jobs.storage.session import batch_session

    with batch_session("tidemark-train") as spark:
        return fit(spark, names, part)


def _models() -> Mapping[str, BoundModel]:
    return load_models(project_views())


def _model(name: str) -> BoundModel:
    known = _models()
    if name not in known:
        raise LedgerError(f"no model is called {name}; known are {', '.join(known) or 'none'}")
    return known[name]
