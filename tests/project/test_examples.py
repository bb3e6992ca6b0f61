"""Every example runs anywhere, without the network, and says something."""

import os
import subprocess
import sys
from pathlib import Path

from sampled import sampled

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "align_two_large_sets.py": "100% of 1000 new items find themselves",
    "clusters_and_names.py": "match of 10 clusters: optimal",
    "image_classes_and_names.py": "80% are right; the match is optimal",
    "qaplib_file.py": "no arrangement costs less than 86",
    "similarity_judgements.py": "optimal: 12 of 14 colours are matched with themselves",
    "two_assays_of_cells.py": "p = 0.05; 0.05 is the least",
    "two_language_models.py": "100% are right, optimal",
    "unequal_sizes_and_outliers.py": "with a price: outliers [-1, -1], optimal",
}


@sampled("name", EXPECTED, quick={"qaplib_file.py", "similarity_judgements.py", "two_language_models.py"})
def test_it_runs_and_shows_what_it_promises(name, tmp_path):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert EXPECTED[name] in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_examples_are_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 40, path.name
