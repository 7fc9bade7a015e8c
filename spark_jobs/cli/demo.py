"""`tidemark demo`: play the whole platform on real events and leave it running."""

import sys

import click
from rich.console import Console

from spark_jobs.settings import settings


@click.command()
def demo() -> None:
    """Start everything, feed it, show merged answers, run the batch layer, verify. Exit code 1 where a step fails."""
    from infra.embedded.airflow_api import AirflowError
    from infra.embedded.demo import DemoFailed
    from infra.embedded.demo import demo as play
    from spark_jobs.serving.sql import SqlError

    try:
        play(settings(), Console())
    except (DemoFailed, AirflowError, SqlError) as error:
        click.echo(f"tidemark demo: {error}", err=True)
        sys.exit(1)
