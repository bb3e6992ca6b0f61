"""Imports point in one direction: a folder imports only from the folders before it."""

import ast
import sys
from pathlib import Path

import pytest

import blindmatch as bm

PACKAGE = Path(bm.__file__).parent
LAYERS = (
    *("errors", "machine", "notebook", "validation", "demo", "io", "geometry", "problem", "proof", "solvers"),
    *("solving", "trust", "alignment", "matching", "encoders", "report", "experiments", "cli"),
)
RESULT = PACKAGE / "solving" / "result.py"
ABOVE = ("blindmatch.trust.", "blindmatch.report.", "blindmatch.matching.saved")
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem in LAYERS)


def imported(path: Path) -> set[str]:
    """All modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "blindmatch":
            found |= {f"blindmatch.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_imports_point_to_earlier_layers(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    names = imported(path)
    if path == RESULT:  # its methods lead to the folders above, which are imported when they are called
        names = {name for name in names if not name.startswith(ABOVE)}
    ours = {name.split(".")[1] for name in names if name.startswith("blindmatch.")} - {"_core"}
    assert ours <= set(LAYERS[: LAYERS.index(layer) + 1])


def test_the_trusted_base_knows_no_solver_and_no_core() -> None:
    for path in (PACKAGE / "proof").glob("*.py"):
        names = imported(path)
        ours = {name.split(".")[1] for name in names if name.startswith("blindmatch.")}
        assert ours <= {"proof", "problem", "io", "validation", "errors", "machine"}, path
        others = {name.split(".")[0] for name in names} - {"blindmatch", *sys.stdlib_module_names}
        assert others <= {"numpy", "scipy", "threadpoolctl"}, path
