"""``doctor``: what is installed, and what the machine has."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from blindmatch.cli.app import command


@command("blindmatch doctor", "blindmatch doctor --json")
def doctor(json: bool = False) -> None:
    """Say what is installed and what the machine has: what a report of a fault needs."""
    from blindmatch.cli.console import echo_json, output

    found = {**_package(), **_machine(), **_extras()}
    if json:
        echo_json(found)
        return
    width = max(map(len, found))
    for name, value in found.items():
        output().print(f"{name:<{width}}  {value}", markup=False, highlight=False, soft_wrap=True)


def _package() -> dict[str, str]:
    """Versions of what blindmatch always uses, and where it comes from."""
    from importlib.metadata import version

    from blindmatch.errors import pip_install

    names = ("numpy", "scipy", "scikit-learn", "typer")
    return {
        "blindmatch": version("blindmatch"),
        "an extra is added by": pip_install("NAME"),
        "Python": f"{platform.python_version()} ({sys.executable})",
        **{name: version(name) for name in names},
    }


def _machine() -> dict[str, str]:
    """Processor, memory, threads and BLAS."""
    import numpy as np  # noqa: F401 (its BLAS must be loaded to be listed)
    from threadpoolctl import threadpool_info

    from blindmatch.machine import available_bytes, usable_cores

    libraries = {f"{one['internal_api']} {one.get('version')} ({one['num_threads']})" for one in threadpool_info()}
    flags = Path("/proc/cpuinfo")
    avx = "unknown" if not flags.exists() else "yes" if "avx2" in flags.read_text(encoding="utf-8") else "no"
    return {
        "system": platform.platform(),
        "processors": str(usable_cores()),
        "AVX2": avx,
        "free memory": f"{available_bytes() / 1e9:.1f} GB",
        "BLAS (threads)": ", ".join(sorted(libraries)) or "none",
        "GPU": _gpu(),
    }


def _gpu() -> str:
    from importlib import import_module

    try:
        torch = import_module("torch")
    except ImportError:
        return "unknown: torch is not installed"
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else "none"


def _extras() -> dict[str, str]:
    """Of each extra, which packages are missing."""
    import re
    from importlib.metadata import PackageNotFoundError, metadata, requires, version

    found = {}
    own = requires("blindmatch") or []
    for extra in metadata("blindmatch").get_all("Provides-Extra") or []:
        if extra in ("test", "docs", "bench", "lint", "dev"):
            continue
        missing = []
        for line in own:
            name = re.match(r"[\w.-]+", line)
            if name is None or name[0] == "blindmatch" or not re.search(rf"extra == ['\"]{extra}['\"]", line):
                continue
            try:
                version(name[0])
            except PackageNotFoundError:
                missing.append(name[0])
        found[f"extra {extra}"] = f"lacks {', '.join(missing)}" if missing else "installed"
    return found
