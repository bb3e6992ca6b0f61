"""What every page is made of: looks and scripts in one file, and a policy that lets nothing else load or run."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

LOOK, THEME = "style.css", "theme.js"  # of every page
_HERE = "blindmatch.report"


def asset(name: str, package: str = _HERE) -> str:
    """The text of a file of a package's ``assets``."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


def bundle(scripts: Sequence[str]) -> str:
    """Scripts as one, with names of their own."""
    return "(() => {\n'use strict';\n" + "\n".join(scripts) + "\n})();"


def policy(script: str, style: str) -> str:
    """What the browser may load and run: nothing but what is written here. Names could never become scripts."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


def script_json(values: Any) -> str:
    """JSON that can stand inside a script element: no name can close it."""
    text = json.dumps(finite(values), separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def finite(value: Any) -> Any:
    """The same without infinities and nan, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def command_box(command: str | None) -> str:
    """A command that can be copied."""
    if command is None:
        return ""
    return (
        '<div class="code"><button type="button" class="copy" data-copy="command">Copy</button>'
        f'<pre id="command" tabindex="0">{escape(command)}</pre></div>'
    )


def facts_rows(facts: Mapping[str, Any]) -> str:
    """Names and values as rows of a table."""
    return "\n".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(str(value))}</td></tr>' for key, value in facts.items()
    )
