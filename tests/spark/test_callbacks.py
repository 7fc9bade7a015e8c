"""C1: Python's side of a micro-batch is called by our own JVM and by nobody else."""

import socket
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.speed import callbacks

CALL = b"c\np0\ncall\nn\nL7\ne\n"
"""py4j: call the first function that Python has given to Java, with (null, 7)."""


def test_c1_a_stranger_begins_no_micro_batch_and_the_jvm_does(spark: SparkSession, tmp_path: Path) -> None:
    callbacks.guard(spark)
    gateway: Any = spark.sparkContext._gateway
    called: list[int] = []
    rows = spark.readStream.format("rate").load().writeStream.foreachBatch(lambda batch, number: called.append(number))
    rows.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    before = list(called)
    assert before, "the JVM's own calls come through"
    door = gateway._callback_server.server_socket.getsockname()
    with socket.create_connection(door, 20) as stranger:
        assert _answer(stranger) == b"", "py4j would answer that it has called, or that it knows no such function"
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", 0))
        held = gateway.jvm.java.net.ServerSocket(stranger.getsockname()[1])
        try:
            stranger.connect(door)
            assert _answer(stranger) == b"", "the JVM holds a port of the same number, but not this connection"
        finally:
            held.close()
    assert called == before


def _answer(door: socket.socket) -> bytes:
    """To a call of the first function that Python has given to Java."""
    door.settimeout(20)
    try:
        door.sendall(CALL)
        return door.recv(100)
    except (ConnectionResetError, BrokenPipeError):
        return b""
