"""What a release promises: one version, type information, complete archives."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import blindmatch as bm

ROOT = Path(__file__).parents[2]
USER = """
import numpy as np
import blindmatch as bm

X = np.zeros((3, 2))
result: bm.Result = bm.match(X, X, solver="tabu", rng=0)
bound: float | None = result.lower_bound
problem = bm.QAP(X @ X.T, X @ X.T)
reveal_type(bm.verify(problem, bm.Certificate(3)))
reveal_type(bm.BlindMatcher(random_state=0).fit(X, X).result_)
reveal_type(result.pairs)
"""


def test_the_version_stands_in_one_place() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert bm.__version__ == version("blindmatch") == written
    elsewhere = [ROOT / "CITATION.cff", ROOT / "CMakeLists.txt", *(ROOT / "src" / "blindmatch").rglob("*.py")]
    assert [path.name for path in elsewhere if written in path.read_text(encoding="utf-8")] == []


def test_the_changelog_has_the_next_version_on_top() -> None:
    titles = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert titles[0] in ("Unreleased", bm.__version__)


@pytest.mark.slow
def test_users_get_types(tmp_path: Path) -> None:
    """mypy sees the types of the package as it is installed, where a wrong use is an error."""
    pytest.importorskip("mypy")
    assert files("blindmatch").joinpath("py.typed").is_file()

    def check(code: str) -> str:
        (tmp_path / "user.py").write_text(code)
        command = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", str(tmp_path / "cache"), "user.py"]
        environment = {"PATH": "", "MYPYPATH": str(source)} if source.name == "src" else {"PATH": ""}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        ).stdout

    source = Path(bm.__file__).parents[1]  # an editable install is not seen by mypy: show it the way
    found = check(USER)
    assert "Success" in found, found
    revealed = re.findall(r'Revealed type is "(.*)"', found.replace("builtins.", ""))
    assert revealed == ["float", "blindmatch.solving.result.Result", "list[tuple[int, int]]"]
    assert "[arg-type]" in check(USER.replace('solver="tabu"', "solver=7"))


@pytest.fixture(scope="module")
def check_dist():
    sys.path.insert(0, str(ROOT / "tools"))
    import check_dist

    yield check_dist
    sys.path.remove(str(ROOT / "tools"))


def test_an_incomplete_archive_is_noticed(check_dist, tmp_path: Path) -> None:
    import zipfile

    wheel = tmp_path / "blindmatch-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("blindmatch/py.typed", "")
        archive.writestr("blindmatch/__pycache__/x.pyc", "")
    found = check_dist.problems(wheel)
    assert not any("py" + r"\.typed" in problem for problem in found)
    assert any("LICENSE" in problem and "missing" in problem for problem in found)
    assert any("__pycache__" in problem for problem in found)
