"""A page of the Data Docs with what a terminal would show."""

import io
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from spark_jobs.serving.formatting import printable

WIDTH = 160
"""In characters."""


def plain(text: str) -> Text:
    """As it is: data is no markup, and steers no terminal."""
    return Text(printable(text))


def write(page: Path, content: RenderableType) -> Path:
    """Make the page, or make it anew."""
    console = Console(file=io.StringIO(), record=True, width=WIDTH)
    console.print(content)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(console.export_html(inline_styles=True), "utf-8")
    return page
