"""What is written twice about the package is the same, and a wheel is what its name says."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from check_dist import mistagged  # noqa: E402
from lowest_versions import lowest  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_conda_recipe_has_the_version_and_the_requirements() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert re.search(r'version: "(.*)"', recipe)[1] == PROJECT["project"]["version"]
    run = re.findall(r"- ([\w-]+) >=([\d.]+)", recipe.partition("  run:")[2].partition("tests:")[0])
    assert [f"{name}>={version}" for name, version in run if name != "python"] == PROJECT["project"]["dependencies"]
    build = [
        f"{name}>={version}" for name, version in re.findall(r"- ([\w-]+) >=([\d.]+)", recipe.partition("run:")[0])
    ]
    assert set(PROJECT["build-system"]["requires"]) <= set(build)


def test_every_requirement_has_a_lowest_version() -> None:
    names = [line.partition("==")[0] for line in lowest(PROJECT["project"]["dependencies"])]
    assert {"numpy", "scipy", "scikit-learn", "typer", "rich", "jinja2"} <= set(names)
    with pytest.raises(ValueError, match="'numpy'"):
        lowest(["numpy"])


@pytest.mark.parametrize(
    ("wheel", "module", "right"),
    [
        ("blindmatch-1-cp312-abi3-manylinux_2_28_x86_64.whl", "_core.abi3.so", True),
        ("blindmatch-1-cp312-abi3-manylinux_2_28_x86_64.whl", "_core.cpython-312-x86_64-linux-gnu.so", False),
        ("blindmatch-1-cp311-abi3-macosx_11_0_arm64.whl", "_core.abi3.so", False),
        ("blindmatch-1-cp311-cp311-macosx_11_0_arm64.whl", "_core.abi3.so", False),
        ("blindmatch-1-cp311-cp311-macosx_11_0_arm64.whl", "_core.cpython-311-darwin.so", True),
        ("blindmatch-1-cp312-abi3-win_amd64.whl", "_core.pyd", True),
        ("blindmatch-1-cp311-cp311-win_amd64.whl", "_core.cp311-win_amd64.pyd", True),
    ],
)
def test_the_tag_of_a_wheel_is_checked(wheel: str, module: str, right: bool) -> None:
    assert (mistagged(wheel, [f"blindmatch/{module}", "blindmatch/_core.pyi"]) == []) == right
