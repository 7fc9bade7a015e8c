"""Put decoded parts together: records that were judged apart, or once more.

Decoded + Decoded -> joined; Decoded + facts of its rejects -> with_facts
"""

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Place
from spark_jobs.engine.decode.assemble import Decoded
from spark_jobs.engine.dedupe import without


def joined(parts: Sequence[Decoded]) -> Decoded:
    """The parts as one. What newer versions add to facts is null in those that older versions read."""
    newest, facts = project_contracts(), defaultdict[str, list[pa.Table]](list)
    for part in parts:
        for name, rows in part.facts.items():
            facts[name].append(rows)
    widened = {name: _widened(tables, newest.of(name).fact_schema) for name, tables in facts.items()}
    return Decoded(widened, pa.concat_tables(part.rejects for part in parts))


def with_facts(decoded: Decoded, again: Decoded) -> Decoded:
    """With the facts that some of the rejected records became when they were read again."""
    if not again.facts:
        return decoded
    taken = pa.concat_tables(places(rows) for rows in again.facts.values())
    return Decoded(joined([decoded, again]).facts, without(decoded.rejects, taken))


def places(rows: pa.Table) -> pa.Table:
    """The coordinates of facts or records."""
    schema = pa.schema(row_types.COORDINATES)
    return rows.select(schema.names).cast(schema)


def places_of(rows: pa.Table) -> list[Place]:
    """The same, row by row."""
    return [Place(**place) for place in places(rows).to_pylist()]


def _widened(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    if any(rows.schema != schema for rows in tables):
        return pa.concat_tables([schema.empty_table(), *tables], promote_options="default")
    return pa.concat_tables(tables)
