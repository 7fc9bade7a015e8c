"""Where the door gets its workers: a process that has loaded the views, and forks one for each socket.

`worker` -> a pair of sockets -> one end to the process -> the number of the worker that serves it. A process that ended
is started again with the next worker. Views are loaded once: where their files change, another nursery takes over.
"""

import asyncio
import socket
import subprocess
import sys
from contextlib import suppress

from spark_jobs.query_server import frames
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.settings import settings

COMMAND = (sys.executable, "-m", "spark_jobs.query_server.worker")
Files = frozenset[tuple[str, int, int]]
Line = tuple[int, asyncio.StreamReader, asyncio.StreamWriter]


def definitions() -> Files:
    """The files that say what views are: path, size, and when it was changed."""
    now = settings()
    files = [*now.views_folder.glob("*.py"), *now.schemas_folder.glob("*.json")]
    found = set()
    for file in files:
        with suppress(FileNotFoundError):  # gone since it was listed
            stat = file.stat()
            found.add((str(file), stat.st_size, stat.st_mtime_ns))
    return frozenset(found)


class Nursery:
    """One process, while the door is open."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._calls: socket.socket | None = None
        self._one_at_a_time = asyncio.Lock()

    async def worker(self) -> Line:
        """The number of a new worker's process, and the line to it. Refusal where the views cannot be loaded."""
        async with self._one_at_a_time:
            calls = self._calls or self._start()
            ours, theirs = socket.socketpair()
            try:
                socket.send_fds(calls, [b"1"], [theirs.fileno()])
                said = await asyncio.get_running_loop().sock_recv(calls, frames.NUMBER.size)
            except OSError:
                said = b""
            finally:
                theirs.close()
            if not said:
                ours.close()
                self.close()
                raise Refusal("broken", "no worker can be started; the read server's log says why")
        return frames.NUMBER.unpack(said)[0], *await asyncio.open_connection(sock=ours)

    def close(self) -> None:
        """End the process; its workers end when their lines do."""
        if self._process is not None and self._calls is not None:
            self._calls.close()
            self._process.kill()
            self._process.wait()
        self._process = self._calls = None

    def _start(self) -> socket.socket:
        self._calls, theirs = socket.socketpair()
        self._calls.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(COMMAND, stdin=theirs.fileno())
        return self._calls
