"""Check what is in a wheel or a source archive before it is published: python tools/check_dist.py FILE..."""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

IN_WHEEL = (
    r"blindmatch/py\.typed",
    r"blindmatch/_core\.pyi",
    r"blindmatch/_core\.[\w.-]+\.(so|pyd)",
    r"blindmatch/data/cifar10\.npz",
    r"blindmatch/report/assets/base\.html",
    r"blindmatch/report/assets/match\.html",
    r"blindmatch/report/assets/pairs\.html",
    r"blindmatch/experiments/assets/sweep\.html",
    r"blindmatch-[\d.]+\.dist-info/licenses/LICENSE",
    r"blindmatch-[\d.]+\.dist-info/entry_points\.txt",
)
IN_SDIST = (
    r"[^/]+/LICENSE",
    r"[^/]+/pyproject\.toml",
    r"[^/]+/CMakeLists\.txt",
    r"[^/]+/src/core/tree/branch_and_bound\.cpp",
    r"[^/]+/src/blindmatch/py\.typed",
    r"[^/]+/tests/cli/test_cli\.py",
)
NOWHERE = r".*(__pycache__|\.pyc$|\.o$|(^|/)\.(env|git|venv)/).*"
LARGEST = 5e6  # bytes


def mistagged(wheel: str, names: list[str]) -> list[str]:
    """A wheel for many versions of Python must hold a module for the stable ABI, and one for a single version none."""
    stable = "-abi3-" in wheel
    if stable and not re.search(r"-cp312-abi3-", wheel):
        return ["the stable ABI is used from Python 3.12 on: expected cp312-abi3 in its name"]
    modules = [name for name in names if re.match(r"blindmatch/_core\.", name) and not name.endswith(".pyi")]
    # Windows names a stable module _core.pyd.
    fit = [name for name in modules if (".abi3." in name or name.endswith("_core.pyd")) == stable]
    return [] if fit == modules else [f"{modules} in a wheel {'with' if stable else 'without'} abi3 in its name"]


def problems(path: Path) -> list[str]:
    """What is wrong with an archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names, wanted = archive.namelist(), IN_WHEEL
    else:
        with tarfile.open(path) as source:
            names, wanted = source.getnames(), IN_SDIST
    found = mistagged(path.name, names) if path.suffix == ".whl" else []
    found += [f"{pattern} is missing" for pattern in wanted if not any(re.fullmatch(pattern, name) for name in names)]
    found += [f"{name} does not belong there" for name in names if re.fullmatch(NOWHERE, name)]
    found += [f"{path.stat().st_size} bytes; expected at most {LARGEST:.0f}"] if path.stat().st_size > LARGEST else []
    return found


def main(paths: list[str]) -> int:
    failed = 0
    for path in map(Path, paths):
        found = problems(path)
        failed |= bool(found)
        print(f"{path.name}: {'; '.join(found) or 'complete'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
