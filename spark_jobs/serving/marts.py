"""Which dbt models of the project read some views, by their texts: itself, or through other models."""

import re

from spark_jobs.settings import settings

SOURCE = re.compile(r"""source\(\s*['"]serving['"]\s*,\s*['"](\w+)['"]\s*\)""")
REF = re.compile(r"""ref\(\s*['"](\w+)['"]\s*\)""")


def downstream(views: set[str]) -> list[str]:
    """Names of the models that read any of the views (names)."""
    texts = {file.stem: file.read_text("utf-8") for file in settings().dbt_folder.glob("models/**/*.sql")}
    found = {name for name, text in texts.items() if views & {*SOURCE.findall(text)}}
    while more := {name for name, text in texts.items() if found & {*REF.findall(text)}} - found:
        found |= more
    return sorted(found)
