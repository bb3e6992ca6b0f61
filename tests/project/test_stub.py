"""The types of the core that mypy reads are those that the core has."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "make_stub.py"


def test_the_stub_is_current() -> None:
    nanobind = pytest.importorskip("nanobind")
    if int(nanobind.__version__.split(".")[0]) < 3:
        pytest.skip("stubs of nanobind 2 look different")
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
