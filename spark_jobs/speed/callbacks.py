"""Let nobody but our own JVM call back into Python.

PySpark's JVM calls the function of foreachBatch through a socket of py4j, on which py4j asks for no token where threads
are pinned, as they are by default: whoever could open a connection to it could begin a micro-batch of his own.
"""

import logging
import socket
from collections.abc import Sequence
from typing import Any

import psutil
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

log = logging.getLogger("tidemark.speed.callbacks")


class _Refused:
    """What py4j's server holds in place of a connection."""

    def start(self) -> None:
        """Nothing is read from it."""

    close = start


def guard(spark: SparkSession) -> None:
    """From now on a connection whose other end is not held by the session's JVM is closed before a word is read."""
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    server, jvm = gateway._callback_server, psutil.Process(gateway.proc.pid)
    create = server._create_connection

    def only_from_jvm(door: socket.socket, stream: Any) -> Any:
        if _is_held_by(jvm, door):
            return create(door, stream)
        log.warning("refused a connection whose other end is not our JVM's")
        door.close()
        stream.close()
        return _Refused()

    server._create_connection = only_from_jvm


def _is_held_by(jvm: psutil.Process, door: socket.socket) -> bool:
    """Both ends are compared: a stranger may come from a port whose number our JVM holds elsewhere.

    An error, whosever, must not end py4j's loop: a stranger that hangs up at once would stop the application.
    """
    try:
        ends = (_end(door.getpeername()), _end(door.getsockname()))
        return any((_end(held.laddr), _end(held.raddr)) == ends for held in jvm.net_connections("tcp") if held.raddr)
    except (OSError, psutil.Error):
        return False


def _end(address: Sequence[Any]) -> tuple[str, int]:
    """Java's sockets are of IPv6, to which an address of IPv4 is mapped."""
    return str(address[0]).removeprefix("::ffff:"), int(address[1])
