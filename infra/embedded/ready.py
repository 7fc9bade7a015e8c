"""Ask one part whether it is ready: the health check of the reference deployment.

`python -m infra.embedded.ready NAME`: exit code 0, or 1 with what the part said instead.
"""

import sys

from infra.embedded.program import NotReady
from infra.embedded.programs import program
from spark_jobs.settings import settings


def main() -> int:
    try:
        program(settings(), sys.argv[1]).ready()
    except NotReady as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
