"""One object for what is matched: checked once, computed once, and the same for every function that takes it."""

from pathlib import Path

import numpy as np
import pytest
from strategies import embeddings
from typer.testing import CliRunner

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.io.embeddings import load_embeddings
from blindmatch.matching import match as matching
from blindmatch.problem.distortions import GromovWasserstein

QUICK = {"rng": 0, "threads": 1}


@pytest.fixture(scope="module")
def sides() -> tuple[np.ndarray, np.ndarray]:
    return embeddings(0, 8, noise=0.05, dimension=6)


@pytest.fixture
def kernels_made(sides, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which of the two sides each computed kernel belongs to; resampled and rotated points do not count."""
    made, kernel = [], GromovWasserstein.kernel

    def counted(self, points: np.ndarray, side: int = 0) -> np.ndarray:
        made.extend(at for at, own in enumerate(sides) if np.array_equal(points, own))
        return kernel(self, points, side)

    monkeypatch.setattr(GromovWasserstein, "kernel", counted)
    return made


def test_min_confidence_computes_each_kernel_once(sides, kernels_made: list[int]) -> None:
    bm.match(*sides, min_confidence=0.5, **QUICK)
    assert kernels_made == [0, 1]


def test_a_task_computes_each_kernel_once_for_all_that_take_it(sides, kernels_made: list[int], tmp_path: Path) -> None:
    task = bm.Task(*sides)
    result = bm.match(task, **QUICK)
    trust = result.assess(draws=5, resamples=5, regret=False, **QUICK)
    result.report(tmp_path / "r.html", trust=trust)
    bm.verify(task.problem, result.certificate)
    assert kernels_made == [0, 1]


def test_the_command_reads_each_file_and_computes_each_kernel_once(
    sides, kernels_made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", sides[0])
    np.save("b.npy", sides[1])
    read, load = [], load_embeddings

    def counted(path: Path, **options: object):
        read.append(path.name)
        return load(path, **options)

    monkeypatch.setattr("blindmatch.cli.inputs.load_embeddings", counted)
    done = CliRunner().invoke(app, ["match", "a.npy", "b.npy", "--assess", "--report", "r.html"])
    assert done.exit_code == 0, done.output
    assert (kernels_made, read) == ([0, 1], ["a.npy", "b.npy"])
    assert 'id="trust"' in Path("r.html").read_text()


def test_a_task_says_the_same_as_its_arguments(sides) -> None:
    options = {"distortion": "cka", "known_pairs": [(0, 3)], "unmatched_cost": 0.2, "max_unmatched": 2}
    task = bm.Task(*sides, **options)
    one, other = bm.match(task, **QUICK), bm.match(*sides, **options, **QUICK)
    assert one.permutation.tolist() == other.permutation.tolist()
    assert (one.cost, one.lower_bound) == (other.cost, other.lower_bound)
    assert one.task is task
    assert task.problem.n == other.task.problem.n == 10


def test_a_task_and_its_arguments_do_not_go_together(sides) -> None:
    task = bm.Task(*sides)
    for given in ({"target": sides[1]}, {"distortion": "cka"}, {"known_pairs": [(0, 0)]}, {"similarity_weight": 2.0}):
        with pytest.raises(ValueError, match=f"{next(iter(given))} is given together with a Task"):
            bm.match(task, **given)
    with pytest.raises(ValueError, match="source_names has 2 items; expected 8"):
        bm.Task(*sides, source_names="ab")


def test_matches_and_permutations_of_items_and_dummies(sides) -> None:
    task = bm.Task(sides[0], sides[1][:6], unmatched_cost=1.0)
    partners = np.array([5, -1, 3, 0, -1, 1, -1, 2])
    full = task.completed(partners)
    assert sorted(full) == list(range(task.problem.n))
    assert task.reduced(full).tolist() == partners.tolist()


def test_a_quick_search_counts_towards_the_time_limit(sides, monkeypatch: pytest.MonkeyPatch) -> None:
    limits, solve = [], matching.solve

    def watched(*arguments: object, time_limit: float, **options: object) -> bm.Result:
        limits.append(time_limit)
        return solve(*arguments, time_limit=time_limit, **options)

    monkeypatch.setattr(matching, "solve", watched)
    bm.match(*sides, unmatched_cost=3.0, time_limit=50.0, **QUICK)
    assert limits[0] == 5.0
    assert limits[1] < 50.0


def test_ctrl_c_in_the_quick_search_keeps_its_match(sides, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = bm.Result(np.arange(16), 1.0, None, "interrupted", "tabu", 0.0)
    monkeypatch.setattr(matching, "quick_search", lambda *_: cut)
    result = bm.match(*sides, unmatched_cost=3.0, **QUICK)
    assert (result.status, result.permutation.tolist()) == ("interrupted", list(range(8)))
