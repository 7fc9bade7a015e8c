"""A statement between a client's calls: its handle is the statement itself.

text, headers, values -> Asked -> bytes that the client keeps -> Asked again.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyarrow import flight

from spark_jobs.query_server.guard import LONGEST
from spark_jobs.query_server.refusal import Refusal

OF_HEADERS = {"tidemark-schema": "schema", "tidemark-as-of": "as_of"}
"""Headers of a call, and what of a question they say."""


@dataclass(frozen=True)
class Asked:
    """A statement as its handle has it. values: of its parameters, a row of an Arrow stream, in base64."""

    text: str
    schema: str = "serving"
    as_of: str | None = None
    values: str | None = None

    def handle(self) -> bytes:
        """Refusal where it would be too long."""
        handle = json.dumps(asdict(self)).encode()
        _refuse_long(handle)
        return handle

    @classmethod
    def by(cls, text: str, headers: Mapping[str, str]) -> "Asked":
        """headers: of the call, by their names in small letters."""
        return cls(text, **{name: headers[header] for header, name in OF_HEADERS.items() if header in headers})

    @classmethod
    def of(cls, handle: bytes) -> "Asked":
        """Refusal where a client made it up."""
        _refuse_long(handle)
        try:
            return cls(**json.loads(handle))
        except (ValueError, TypeError) as error:
            raise Refusal("refused", "this is no handle of a statement") from error


def _refuse_long(handle: bytes) -> None:
    if len(handle) > LONGEST:
        raise Refusal("too_large", f"the statement and its values have more than {LONGEST:,} bytes")


def bound(reader: flight.MetadataRecordBatchReader) -> str:
    """The one row of parameters, in base64. Refusal."""
    rows = reader.read_all()
    if rows.num_rows != 1:
        raise Refusal("refused", f"{rows.num_rows} rows of parameters: this door takes one")
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_table(rows)
    return base64.b64encode(out.getvalue()).decode()
