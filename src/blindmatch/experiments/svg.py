"""Embed a matplotlib SVG in a page: no styles that the page's policy forbids, and the colours of the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree  # nosec B405 (what matplotlib has just drawn, nothing else)

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_DROPPED = {f"{{{_SVG}}}{name}" for name in ("metadata", "style")}


def inline_svg(text: str, prefix: str, title: str) -> str:
    """The svg element only: styles as attributes, black replaced by the text colour, names with a prefix.

    >>> drawn = '<svg xmlns="http://www.w3.org/2000/svg"><path id="a" style="fill: none; stroke: #000000"/></svg>'
    >>> inline_svg(drawn, "x", "Fig. 1").partition("<path ")[2]
    'id="x-a" fill="none" stroke="currentColor" /></svg>'
    """
    root = ElementTree.fromstring(text)  # nosec B314 (our own drawing)
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in _DROPPED]:
            parent.remove(child)
    for element in root.iter():
        for part in element.attrib.pop("style", "").split(";"):
            name, colon, value = part.partition(":")
            if colon:
                element.set(name.strip(), value.strip())
        for name, value in element.attrib.items():
            element.set(name, _changed(name, value, prefix))
    root.attrib.pop("height", None)  # follows from the width, which may shrink with the page
    root.attrib.update({"aria-label": title, "role": "img", "fill": "currentColor"})
    root.attrib.update({"stroke-linejoin": "round", "stroke-linecap": "butt"})  # these were in the style element
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    return ElementTree.tostring(root, encoding="unicode")


def _changed(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name.endswith("href") and value.startswith("#"):
        return f"#{prefix}-{value[1:]}"
    if name in ("fill", "stroke") and value == "#000000":
        return "currentColor"
    return re.sub(r"url\(#", f"url(#{prefix}-", value)
