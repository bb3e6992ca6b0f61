"""The small version of benchmarks/load.py: fork, spawn and threads give the results of a run alone."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "load.py"


@pytest.mark.slow
def test_many_matches_at_once() -> None:
    command = [sys.executable, str(SCRIPT), "--workers", "2", "--matches", "40"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[0].strip("| ") for row in rows] == ["fork", "spawn", "threads"]
    assert [row[2] for row in rows] == ["0"] * 3
