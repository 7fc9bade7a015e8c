"""CPU seconds in DRAIN are those of all of a peer's processes."""

import subprocess
import sys
import time
from contextlib import suppress

import psutil

from tests.bench.cpu import Meter

BUSY = "import time\nwhile time.process_time() < 1: pass\n"
PARENT = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {BUSY!r}]); time.sleep(2)"


def test_a_child_that_has_ended_counts_and_its_parents_idle_time_does_not() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT]) as parent:
        root = psutil.Process(parent.pid)

        def living() -> list[psutil.Process]:
            with suppress(psutil.NoSuchProcess):
                return [root, *root.children(recursive=True)]
            return []

        began_at = time.time()
        with Meter(living) as meter:
            parent.wait()
    whole = meter.span(began_at, time.time())
    assert 0.9 < whole.cpu_seconds < 2 < whole.seconds
