"""How many examples a law is tried on: few in `make test`, WHOLE times as many in `make test-laws`."""

import os

WHOLE = 5
VARIABLE = "TIDEMARK_TESTS_WHOLE"


def examples(few: int) -> int:
    """`few`, or where all are asked for WHOLE times as many."""
    return few * (WHOLE if VARIABLE in os.environ else 1)
