"""The messages of Flight SQL that this door takes and gives, as protobuf has them: names, fields and their numbers.

bytes of a descriptor, ticket or action -> a message by its name -> bytes. Arrow's format/FlightSql.proto is the source.
"""

from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from spark_jobs.query_server.refusal import Refusal

PACKAGE = "arrow.flight.protocol.sql"
Field = descriptor_pb2.FieldDescriptorProto
TEXT, BYTES, TRUE, NUMBER = Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_BOOL, Field.TYPE_UINT32
Fields = tuple[tuple[str, int, bool], ...]
"""Name, type, and whether there may be many; they are numbered from 1 on."""
MANY, ONE = True, False
OF_A_TABLE: Fields = (("catalog", TEXT, ONE), ("db_schema", TEXT, ONE), ("table", TEXT, ONE))
NAMED: dict[str, Fields] = {
    "CommandStatementQuery": (("query", TEXT, ONE),),
    "CommandPreparedStatementQuery": (("prepared_statement_handle", BYTES, ONE),),
    "TicketStatementQuery": (("statement_handle", BYTES, ONE),),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": (("catalog", TEXT, ONE), ("db_schema_filter_pattern", TEXT, ONE)),
    "CommandGetTables": (
        ("catalog", TEXT, ONE), ("db_schema_filter_pattern", TEXT, ONE), ("table_name_filter_pattern", TEXT, ONE),
        ("table_types", TEXT, MANY), ("include_schema", TRUE, ONE),
    ),
    "CommandGetTableTypes": (),
    "CommandGetPrimaryKeys": OF_A_TABLE,
    "CommandGetExportedKeys": OF_A_TABLE,
    "CommandGetImportedKeys": OF_A_TABLE,
    "CommandGetSqlInfo": (("info", NUMBER, MANY),),
    "ActionCreatePreparedStatementRequest": (("query", TEXT, ONE),),
    "ActionCreatePreparedStatementResult": (
        ("prepared_statement_handle", BYTES, ONE), ("dataset_schema", BYTES, ONE), ("parameter_schema", BYTES, ONE),
    ),
    "ActionClosePreparedStatementRequest": (("prepared_statement_handle", BYTES, ONE),),
    "DoPutPreparedStatementResult": (("prepared_statement_handle", BYTES, ONE),),
}  # fmt: skip


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="tidemark/flight_sql.proto", package=PACKAGE, syntax="proto2")
    for name, fields in NAMED.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, is_many) in enumerate(fields, start=1):
            label = Field.LABEL_REPEATED if is_many else Field.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()  # of its own: another library may know the same names
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in NAMED}


_CLASSES = _classes()


def packed(name: str, **values: object) -> bytes:
    """A message within protobuf's `Any`."""
    around = any_pb2.Any()
    around.Pack(_CLASSES[name](**values))
    said: bytes = around.SerializeToString()
    return said


def plain(name: str, **values: object) -> bytes:
    """A message by itself."""
    said: bytes = _CLASSES[name](**values).SerializeToString()
    return said


def unpacked(said: bytes) -> tuple[str, Any]:
    """The name and the message. Refusal where it is none of those above."""
    around = any_pb2.Any()
    try:
        around.ParseFromString(said)
        name = around.type_url.rpartition(f"/{PACKAGE}.")[2]
        if name in _CLASSES:
            return name, _CLASSES[name].FromString(around.value)
    except DecodeError as error:
        raise Refusal("refused", f"not a message of Flight SQL: {error}") from error
    raise Refusal("refused", f"{around.type_url[-80:] or 'no message'} is not among what this door takes")
