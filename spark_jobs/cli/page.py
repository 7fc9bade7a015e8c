"""A page of the Data Docs with what a terminal would show."""

import io
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from spark_jobs.serving.formatting import printable

WIDTH = 160
"""In characters."""
PAGE = """<!DOCTYPE html>
<html>
<head><meta charset="UTF-8"><style>body {{ color: {foreground}; background-color: {background}; }}</style></head>
<body><pre style="font-family: Menlo, 'DejaVu Sans Mono', Consolas, monospace; font-size: 13px"><code
style="font-family: inherit">{code}</code></pre></body>
</html>
"""
"""What stands around the text: all of WIDTH fits a window of 1,280 pixels."""


def plain(text: str) -> Text:
    """As it is: data is no markup, and steers no terminal."""
    return Text(printable(text))


def write(page: Path, content: RenderableType) -> Path:
    """Make the page, or make it anew."""
    console = Console(file=io.StringIO(), record=True, width=WIDTH)
    console.print(content)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(console.export_html(inline_styles=True, code_format=PAGE), "utf-8")
    return page
