"""Hooks of mkdocs: docstrings are numpydoc, pages are Markdown."""


def on_page_content(html: str, **_: object) -> str:
    """A double colon before an indented block is reStructuredText's; readers want one."""
    return html.replace("::</p>", ":</p>")
