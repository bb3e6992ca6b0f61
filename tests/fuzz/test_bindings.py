"""Every function of the compiled core with bad arguments, one process for each function: it may refuse, not crash."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.bindings import CALLS, N, ascent, names_in_core, permutation, problem, shared_tree, tree, tree_options

from blindmatch import _core

SCRIPT = Path(__file__).with_name("bindings.py")


def test_the_fuzz_knows_every_function_and_argument() -> None:
    assert names_in_core() == {name: set(make()[1]) for name, make in CALLS.items()}


@pytest.mark.parametrize("name", CALLS)
def test_bad_arguments_do_not_crash(name: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, name], capture_output=True, text=True, check=False)
    last = (done.stdout.splitlines() or ["none"])[-1]
    assert done.returncode == 0, f"exit {done.returncode} in {last}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("HahnGrant.offer", "permutation", permutation() + 1),
        ("HahnGrant.offer", "permutation", permutation(N - 1)),
        ("HahnGrant.take_duals", "self", ascent(taken=True)),
        ("HahnGrant.sweep", "self", ascent(taken=True)),
        ("Problem.__init__", "factors", []),
        ("Problem.__init__", "forbidden", np.zeros((1, 1), bool)),
        ("branch_and_bound", "initial", permutation() * 0),
        ("dual_ascent", "initial", permutation() - 1),
        ("exact_subsets", "k", 0),
        ("exact_subsets", "known", np.array([[0, 1, 8]], np.int32)),
        ("exact_subsets", "known", np.array([[0, 0, 1]], np.int32)),
        ("search_subsets", "k", 0),
        ("search_subsets", "threads", 0),
        ("tabu", "streams", 1 << 40),
        ("SharedTree.__init__", "root", tree(5)),
        ("SharedTree.give_back", "number", 7),
    ],
)
def test_what_crashed_is_refused(name: str, argument: str, value: Any) -> None:
    function, arguments = CALLS[name]()
    arguments[argument] = value
    owner = [arguments.pop("self")] if "self" in arguments else []
    with pytest.raises(ValueError, match=r"expected|taken|not out"):
        function(*owner, **arguments)


def test_a_tree_that_was_looked_at_is_not_taken() -> None:
    """Python has references to the nodes of its proof, which a shared tree would move."""
    own = problem(9)
    root = tree(own=own)
    assert root.proof[0].parent is None
    with pytest.raises(ValueError, match="looked at"):
        _core.SharedTree(own, tree_options(), root)
    fresh = tree(own=own)
    match = fresh.permutation
    shared = _core.SharedTree(own, tree_options(), fresh)
    assert sorted(match) == list(range(9))
    assert shared.nodes > 0
    assert fresh.proof == []
    with pytest.raises(ValueError, match="no other tree has taken"):
        _core.SharedTree(own, tree_options(), fresh)


def test_a_finished_tree_is_empty() -> None:
    finished = shared_tree()
    assert finished.finish(_core.BoundStatus.stalled).proof[0].parent is None
    for call in (
        lambda: finished.take(1),
        lambda: finished.give_back(0),
        lambda: finished.absorb(0, b""),
        finished.encoded,
        lambda: finished.finish(_core.BoundStatus.stalled),
    ):
        with pytest.raises(ValueError, match="finished"):
            call()
