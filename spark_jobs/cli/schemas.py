"""`tidemark schemas`: the versions of every event type, and from which lsn on each is in force.

Exit codes: 0 done; 1 a schema file no longer says what it said when it came in force; 2 wrong usage.
"""

import click

from spark_jobs.cli.serving import form_option, refuse, terminal_width
from spark_jobs.serving.formatting import Answer, Format, text

_KINDS = {"schema": "STRING", "in_force_from": "BIGINT", "topic": "STRING", "key": "STRING", "owner": "STRING"}


@click.command()
@form_option
def schemas(form: Format) -> None:
    """Every schema, and from which lsn on it is in force; nothing there: from the speed layer's next start on."""
    from spark_jobs.contracts.loader import project_contracts
    from spark_jobs.contracts.model import ContractError
    from spark_jobs.storage import log_reader

    try:
        lsns = {(one.event_type, one.version): one.lsn for one in log_reader.read_schema_history().entries}
        known = project_contracts().every
    except ContractError as error:
        refuse(str(error))
    rows = [
        (f"{one.event_type}.v{one.version}", lsns.get((one.event_type, one.version)), one.topic, one.key, one.owner)
        for one in known
    ]
    click.echo(text(Answer(tuple(_KINDS), tuple(_KINDS.values()), rows), form, terminal_width()), nl=False)
