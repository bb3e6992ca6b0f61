"""``models``, ``solvers`` and ``doctor``: what can be used, and what is installed."""

from __future__ import annotations

import difflib
import inspect
import platform
import re
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 (its BLAS must be loaded to be listed)
from rich.padding import Padding
from rich.text import Text
from threadpoolctl import threadpool_info

from blindmatch.cli.console import echo_json, output, plain_table
from blindmatch.cli.options import Given
from blindmatch.encoders.registry import MODALITIES, list_models
from blindmatch.errors import pip_install, unknown_name
from blindmatch.machine import available_bytes, usable_cores


def models(given: Given) -> None:
    """List the models that have a name of their own."""
    known, word = list_models(), given.word
    if given.modality is not None and given.modality not in MODALITIES:
        raise unknown_name("--modality", given.modality, MODALITIES)
    families = sorted({model.family for model in known})
    if given.family is not None and given.family.lower() not in {name.lower() for name in families}:
        raise unknown_name("--family", given.family, families)
    rows = [
        row
        for row in (model.row() for model in known)
        if given.modality in (None, row["modality"])
        and (given.family is None or row["family"].lower() == given.family.lower())
        and (not given.paper or row["paper"])
        and (not given.offline or row["package"] is not None)
        and (word is None or word.lower() in f"{row['id']} {row['name']} {row['library_name']}".lower())
    ]
    if not rows:
        words = {part for model in known for part in (model.id, *model.id.split("-"))}
        close = difflib.get_close_matches((word or "").lower(), words, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "; 'blindmatch models' lists them all"
        raise ValueError(f"no model is listed with {f'{word!r} and ' if word else ''}these options{hint}")
    if given.json:
        return echo_json(rows)
    table = plain_table("model|", "in its library", "size>|", "input>|", "dim>|", tight=True)
    for row in rows:
        sizes = ["" if row[key] is None else str(row[key]) for key in ("input_size", "dimension")]
        library = row["library_name"] if row["package"] is None else row["package"]
        table.add_row(Text(row["id"]), Text(library), _millions(row["parameters"]), *sizes)
    output().print(table)


def _millions(count: int | None) -> str:
    """A number of parameters for people."""
    if count is None:
        return ""
    return f"{count / 1e6:.0f} M" if count >= 1e7 else f"{count / 1e6:.1f} M"


_WITH_NOTES = 78  # columns of a terminal that the table of solvers needs
ABILITIES = {
    "bound": ("bound", "proves a lower bound"),
    "exact": ("exact", "ends with a proof of optimality, given time"),
    "linear": ("linear", "takes a linear term (known pairs lead to one)"),
    "forbidden": ("forbid", "takes forbidden pairs"),
    "asymmetric": ("asym", "takes asymmetric matrices"),
    "unequal": ("uneq", "takes sets of unequal sizes"),
}


def solvers(given: Given) -> None:
    """List the solvers and what each can do; a narrow terminal gets a list in place of a table."""
    from blindmatch.solvers import SOLVERS  # takes longer to import than all else in this file

    if given.json:
        return echo_json([_row(name, solver) for name, solver in SOLVERS.items()])
    console, titles = output(), [title for title, _ in ABILITIES.values()]
    table = plain_table("solver|", *(f"{title}^|" for title in titles), "max n>|", "note", tight=True)
    for name, solver in SOLVERS.items():
        row = _row(name, solver)
        largest = "any" if row["max_size"] is None else str(row["max_size"])
        note = row["note"] if row["installed"] else f"not installed: {row['install']}"
        if console.width < _WITH_NOTES:
            able = ", ".join(title for key, (title, _) in ABILITIES.items() if row[key])
            about = Padding(Text(f"{able}; max n: {largest}\n{note}"), (0, 0, 0, 2))
            console.print(Text(name, style="bold"), about)
        else:
            table.add_row(name, *("✓" if row[key] else "-" for key in ABILITIES), largest, Text(note))
    legend = Text("\n" + "; ".join(f"{title}: {meaning}" for title, meaning in ABILITIES.values()) + ".")
    console.print(*([table] if table.row_count else []), legend)


def _row(name: str, solver: Any) -> dict[str, Any]:
    can = solver.capabilities
    return {
        "name": name,
        **{ability: getattr(can, ability) for ability in ABILITIES},
        "max_size": can.max_size,
        "installed": can.installed,
        "install": None if can.requires is None else can.requires.install,
        "options": list(inspect.signature(solver).parameters),
        "note": can.note,
    }


def doctor(given: Given) -> None:
    """Say what is installed and what the machine has."""
    libraries = {f"{one['internal_api']} {one.get('version')} ({one['num_threads']})" for one in threadpool_info()}
    flags, gpu = Path("/proc/cpuinfo"), "unknown: torch is not installed"
    with suppress(ImportError):
        torch = import_module("torch")
        gpu = str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else "none"
    found = {
        "blindmatch": version("blindmatch"),
        "an extra is added by": pip_install("NAME"),
        "Python": f"{platform.python_version()} ({sys.executable})",
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "typer")},
        "system": platform.platform(),
        "processors": str(usable_cores()),
        "AVX2": "unknown" if not flags.exists() else "yes" if "avx2" in flags.read_text(encoding="utf-8") else "no",
        "free memory": f"{available_bytes() / 1e9:.1f} GB",
        "BLAS (threads)": ", ".join(sorted(libraries)) or "none",
        "GPU": gpu,
        **{f"extra {name}": f"lacks {', '.join(lost)}" if lost else "installed" for name, lost in _extras().items()},
    }
    if given.json:
        return echo_json(found)
    width = max(map(len, found))
    for name, value in found.items():
        output().print(f"{name:<{width}}  {value}", markup=False, highlight=False, soft_wrap=True)


def _extras() -> dict[str, list[str]]:
    """The packages of each extra that are missing."""
    found: dict[str, list[str]] = {}
    for line in requires("blindmatch") or []:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is None or extra is None or extra[1] in ("test", "docs", "bench", "lint", "dev"):
            continue
        lost = found.setdefault(extra[1], [])
        try:
            version(name[0])
        except PackageNotFoundError:
            lost.append(name[0])
    return found
