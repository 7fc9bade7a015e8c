"""Check the project's definitions and list them: `python -m spark_jobs.registry`.

Exit codes: 0 all can be used; 1 a definition cannot, and the last line says which, where, why and what to do.
"""

import sys

from spark_jobs.registry.models import load_models
from spark_jobs.registry.views import project_views
from spark_jobs.settings import ProjectError


def main() -> int:
    """Print a line per view and per model."""
    try:
        views = project_views()
        models = load_models(views)
    except ProjectError as error:
        print(error, file=sys.stderr)
        return 1
    for view in (*views, *views.chained):
        print(f"{view.id} ({view.owner}; {', '.join(view.event_types)}): {view.description}")
    for model in models.values():
        print(f"{model.name} ({model.declaration.owner}; of {model.view.id}): {model.declaration.description}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
