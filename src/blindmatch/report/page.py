"""What every page is made of: a template, styles and scripts in one file, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from blindmatch.io.csv_text import REPLACED
from blindmatch.io.json_values import json_finite

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = "blindmatch.report"


def fill(
    template: str, scripts: Sequence[str], styles: Sequence[str], *, package: str = _HERE, data: Any, **values: Any
) -> str:
    """Fill in a page template. Everything in `values` is escaped; nothing in them reorders the text around it.

    Parameters
    ----------
    template, scripts, styles
        Names of files in the ``assets`` of `package` or of this package. Scripts and styles become part of the page.
    package
        Where assets are looked up first.
    data
        What the scripts read, as JSON.
    values
        What the template shows.
    """
    environment = _environment(package)

    def text(names: Sequence[str]) -> str:
        assert environment.loader is not None
        return "\n".join(environment.loader.get_source(environment, name)[0] for name in names)

    script, style = f"(() => {{\n'use strict';\n{text(scripts)}\n}})();", text(styles)
    return environment.get_template(template).render(
        values, data=json_finite(data), script=script, style=style, policy=_policy(script, style)
    )


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # only reports need it

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "assets") for name in (package, _HERE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value.translate(REPLACED) if isinstance(value, str) else value,
    )
    # Letters are not escaped in JSON, so that `finalize` sees them.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    environment.filters["units"] = lambda text: text.replace(" %", "\u00a0%")  # a number and its unit on one line
    return environment


def _policy(script: str, style: str) -> str:
    """What the browser may load and run: only this script and this style. A name can never become a script."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"
