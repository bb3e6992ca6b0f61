"""The package on a system that has neither /proc nor what only Unix has, and on terminals without UTF-8."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sampled import sampled

BARE = Path(__file__).with_name("bare_system")


def bare(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the modules and functions that some systems lack."""
    environment = {**os.environ, "PYTHONPATH": str(BARE), **environment}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_what_is_taken_away_is_gone() -> None:
    code = (
        "import os; print(hasattr(os, 'uname'), hasattr(os, 'sched_getaffinity'), os.path.exists('/proc/self/task'))\n"
    )
    code += "try:\n    import resource\nexcept ImportError:\n    print('gone')\n"
    code += "try:\n    open('/proc/meminfo')\nexcept FileNotFoundError:\n    print('hidden')"
    assert bare("-c", code).stdout.split()[:2] == ["False", "False"]
    assert bare("-c", code).stdout.split()[-2:] == ["gone", "hidden"]


def test_a_match_is_the_same() -> None:
    code = (
        "import numpy as np, blindmatch as bm; X = np.random.default_rng(0).normal(size=(9, 5));"
        "r = bm.match(X, X[::-1] @ np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0], rng=0);"
        "print(r.status, r.lower_bound <= r.cost, *r.permutation)"
    )
    assert bare("-c", code).stdout.split() == ["optimal", "True", *map(str, range(8, -1, -1))]


def test_memory_is_checked_only_where_it_is_known() -> None:
    code = "from blindmatch.solving.limits import available_bytes as free; print(free())"
    assert int(bare("-c", code).stdout) == 1 << 62
    here = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(here.stdout) < 1 << 50


@pytest.mark.slow
def test_an_experiment_starts_its_workers_anew_and_resumes(tmp_path: Path) -> None:
    command = ("-m", "blindmatch", "experiment", "shuffling", "--quick", "--out", tmp_path / "with ü", "--json")
    first = json.loads(bare(*command, "--workers", "2").stdout)
    assert json.loads(bare(*command).stdout) == first


@sampled("encoding", ["ascii", "cp1252"], quick=1)
def test_a_terminal_without_utf8_shows_everything(encoding: str) -> None:
    plain = {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    assert "optimal" in bare("-X", "utf8=0", "-m", "blindmatch", "demo", **plain).stdout
    solvers = bare("-X", "utf8=0", "-m", "blindmatch", "solvers", **plain).stdout
    assert next(line for line in solvers.splitlines() if line.startswith("faq")).split()[1:3] == ["-", "-"]
    assert next(line for line in solvers.splitlines() if line.startswith("branch")).split()[1:3] == ["+", "+"]
