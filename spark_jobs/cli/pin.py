"""`tidemark pin create | list | drop`: named schemas that answer as the platform did at one moment.

Exit codes as in step.py.
"""

import json
from datetime import datetime, timedelta

import click

from spark_jobs.cli.step import instant, json_option, ledger_step, show, thrift
from spark_jobs.publication import pins
from spark_jobs.registry.views import project_views


@click.group()
def pin() -> None:
    """Named schemas that answer as the platform did at one moment."""


@pin.command("create")
@click.argument("name", required=False)
@click.option("--at", callback=instant, help="ISO 8601 time with its zone; default: now (--head).")
@click.option("--head", is_flag=True, help="Now, which is the default.")
@click.option("--published", is_flag=True, help="Only what is built and audited, nothing past the publication's cut.")
@click.option("--days", type=click.IntRange(min=1), help="Retention drops the pin after so many days.")
@json_option
def create_pin(
    name: str | None, at: datetime | None, head: bool, published: bool, days: int | None, as_json: bool
) -> None:
    """Make the schema pin_NAME."""
    if head and (at or published):
        raise click.UsageError("--head excludes --at and --published")
    keep = timedelta(days=days) if days else None
    with ledger_step() as store, thrift() as execute:
        made = pins.create(execute, project_views(), store, name, at, keep, is_published=published)
    if as_json:
        click.echo(json.dumps(pins.describe(made)))
    else:
        made_of = f"publication {made.publication_id}, lsn <= {made.head}, now {made.now.isoformat()}"
        click.echo(f"schema {pins.schema(made.name)}: {made_of}")


@pin.command("list")
@json_option
def list_pins(as_json: bool) -> None:
    """All pins."""
    with ledger_step() as store:
        rows = [pins.describe(pin) for pin in store.pins()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        show("pins", rows)


@pin.command("drop")
@click.argument("name")
def drop_pin(name: str) -> None:
    """Remove the schema pin_NAME."""
    with ledger_step() as store, thrift() as execute:
        pins.drop(execute, store, name)
        click.echo(f"dropped {pins.schema(name)}")
