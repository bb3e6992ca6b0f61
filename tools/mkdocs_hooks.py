"""Hooks of mkdocs: docstrings are numpydoc, pages are Markdown, notebooks become pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def on_page_content(html: str, **_: object) -> str:
    """A double colon before an indented block is reStructuredText's; readers want one."""
    return html.replace("::</p>", ":</p>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page for each notebook of the examples, with what it printed and drew."""
    for path in sorted(Path(config.config_file_path).with_name("examples").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join(part for cell in cells for part in _parts(cell))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    return files


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    """The text of a cell, and of its outputs, as Markdown."""
    source = "".join(cell["source"])
    yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            image = "".join(data["image/png"]).replace("\n", "")
            yield f'<img alt="The figure that this cell draws" src="data:image/png;base64,{image}">'
        elif text := "".join(output.get("text", data.get("text/plain", []))):
            yield f"```text\n{text.rstrip()}\n```"
