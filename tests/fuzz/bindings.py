"""Call a function of the compiled core with bad arguments: python tests/fuzz/bindings.py NAME.

Each argument in turn gets every bad value while the others stay good. The call may succeed or raise one of `REFUSALS`.
A crash ends the process; the last line printed names the call. `names_in_core` lists what there is to call.
"""

from __future__ import annotations

import faulthandler
import gc
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from blindmatch import _core
from blindmatch.solvers.base import Budget

REFUSALS = (ValueError, TypeError, IndexError)
N = 4
SECONDS = 0.02  # of a run whose options would keep it busy for ever
Arguments = dict[str, Any]


class CoreBudget(Budget):
    """A budget for searches and bounds: the core reports to them with different arguments."""

    def report(self, *_: Any) -> bool:  # type: ignore[override]
        """Whether to go on."""
        return not self.stopped


def budget(**replaced: Any) -> Any:
    """A budget, or one whose attributes have other values; those that are exceptions are raised."""

    def attribute(value: Any) -> property:
        def get(_: Any) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        return property(get, lambda *_: None)

    return type("OddBudget", (CoreBudget,), {name: attribute(value) for name, value in replaced.items()})(SECONDS)


def problem(n: int = N, forbidden: bool = False) -> _core.Problem:
    """A problem that is not solved at once."""
    rng = np.random.default_rng(n)
    A, B = rng.integers(0, 9, size=(2, n, n)).astype(float)
    for matrix in (A, B):
        matrix += matrix.T
        np.fill_diagonal(matrix, 0)
    return _core.Problem([(A, B)], rng.random((n, n)), 0.0, np.eye(n, dtype=bool) if forbidden else None)


def permutation(n: int = N) -> Any:
    """The identity as the core takes it."""
    return np.arange(n, dtype=np.int32)


def target() -> _core.Target:
    """When to stop."""
    return _core.Target(tolerance=1e-6, granularity=0.0, noise=0.0)


def ascent_options() -> _core.DualAscentOptions:
    """Options of the bound."""
    return _core.DualAscentOptions(target=target(), memory_limit=1 << 20, seed=0, threads=1)


def tree_options(nodes: int | None = 1) -> _core.BranchAndBoundOptions:
    """Options of the tree, which then stays open."""
    return _core.BranchAndBoundOptions(root=ascent_options(), proof_limit=1 << 20, node_limit=nodes)


def tree(n: int = 9, own: _core.Problem | None = None) -> _core.TreeResult:
    """A tree with open nodes."""
    return _core.branch_and_bound(own or problem(n), tree_options(), permutation(n), budget())


def shared_tree() -> _core.SharedTree:
    """A tree whose pieces can be taken; piece 0 is out."""
    own = problem(9)
    shared = _core.SharedTree(own, tree_options(), tree(own=own))
    shared.take(1)
    return shared


def piece() -> bytes:
    """A piece of such a tree."""
    return shared_tree().take(2)[1]


def ascent(taken: bool = False) -> _core.HahnGrant:
    """The paper's ascent."""
    made = _core.HahnGrant(problem(), factorized=True, lap="jonker-volgenant", evaluate_laps=True, threads=1)
    if taken:
        made.take_duals()
    return made


def duals(n: int = N) -> Any:
    """Duals of a certificate."""
    return np.zeros((n, n, n), np.float32)


def subset_arguments() -> Arguments:
    """What both searches for subsets take."""
    return {"cost": np.random.default_rng(0).random((8, 8)), "size": 3, "k": 2, "budget": budget()}


def box_arguments(n: int = N) -> Arguments:
    """What the box step of the splitting takes, with a slack of one panel."""
    rows, columns = (each.ravel().astype(np.int32) for each in np.indices((n, n)))
    side = n * n + 1
    square, tall = (side, side), (side, 2 * n)
    shapes = {"state": square, "point": square, "cost": square, "slack": (3, side), "duals": tall, "sums": tall}
    arrays = {name: np.zeros(shape, np.float32) for name, shape in {**shapes, "transposed": tall[::-1]}.items()}
    return {**arrays, "rows": rows, "columns": columns, "weight": 1.0, "stride": 2.0, "begin": 0}


def method(make: Callable[[], Any], name: str, **arguments: Any) -> tuple[Callable[..., Any], Arguments]:
    """A bound method, as a function of `self`."""
    return getattr(type(make()), name), {"self": make(), **arguments}


def constructor(kind: type, **arguments: Any) -> tuple[Callable[..., Any], Arguments]:
    """The constructor of a bound class."""
    return kind, arguments


# For each bound function and method: what to call, and good arguments. They are made anew for each call.
CALLS: dict[str, Callable[[], tuple[Callable[..., Any], Arguments]]] = {
    "BranchAndBoundOptions.__init__": lambda: constructor(
        _core.BranchAndBoundOptions,
        root=ascent_options(),
        proof_limit=1 << 20,
        open_limit=1 << 20,
        node_limit=3,
        cost_limit=0.0,
        symmetry=True,
        checkpoint_interval=60.0,
    ),
    "DualAscentOptions.__init__": lambda: constructor(
        _core.DualAscentOptions, target=target(), memory_limit=1 << 20, seed=0, threads=1, relaxation=True
    ),
    "HahnGrant.__init__": lambda: constructor(
        _core.HahnGrant, problem=problem(), factorized=True, lap="auction", evaluate_laps=True, threads=1
    ),
    "HahnGrant.offer": lambda: method(ascent, "offer", permutation=permutation()),
    "HahnGrant.sweep": lambda: method(ascent, "sweep", budget=budget()),
    "HahnGrant.take_duals": lambda: method(ascent, "take_duals"),
    "Problem.__init__": lambda: constructor(
        _core.Problem,
        factors=[(np.zeros((N, N)), np.zeros((N, N)))],
        linear=np.zeros((N, N)),
        constant=0.0,
        forbidden=np.zeros((N, N), bool),
    ),
    "SharedTree.__init__": lambda: constructor(
        _core.SharedTree, problem=problem(9), options=tree_options(), root=tree()
    ),
    "SharedTree.absorb": lambda: method(shared_tree, "absorb", number=0, piece=piece()),
    "SharedTree.finish": lambda: method(shared_tree, "finish", status=_core.BoundStatus.stalled),
    "SharedTree.give_back": lambda: method(shared_tree, "give_back", number=0),
    "SharedTree.encoded": lambda: method(shared_tree, "encoded"),
    "SharedTree.take": lambda: method(shared_tree, "take", count=1),
    "Stage.from_certificate": lambda: (_core.Stage.from_certificate, {"U": duals(), "V": duals()}),
    "Target.__init__": lambda: constructor(
        _core.Target, tolerance=1e-6, granularity=0.0, noise=0.0, gap=0.0, enough=1.0
    ),
    "box_step": lambda: (_core.box_step, box_arguments()),
    "branch_and_bound": lambda: (
        _core.branch_and_bound,
        {"problem": problem(), "options": tree_options(), "initial": permutation(), "budget": budget(), "saved": None},
    ),
    "dense_sweeps": lambda: (
        _core.dense_sweeps,
        {
            "pairs": np.ones((N * N, N * N), np.float32),
            "linear": np.ones((N, N)),
            "forbidden": np.zeros((N, N), bool),
            "count": 3,
            "gain": 0.0,
            "threads": 1,
            "budget": budget(),
        },
    ),
    "dual_ascent": lambda: (
        _core.dual_ascent,
        {
            "problem": problem(),
            "options": ascent_options(),
            "initial": permutation(),
            "start": _core.Stage.from_certificate(duals(), duals()),
            "budget": budget(),
        },
    ),
    "enumerate": lambda: (_core.enumerate, {"problem": problem(), "seed": 0, "threads": 1, "budget": budget()}),
    "exact_subsets": lambda: (
        _core.exact_subsets,
        {**subset_arguments(), "known": np.array([[0, 1, 2], [2, 3, 5]], np.int32)},
    ),
    "grow_piece": lambda: (
        _core.grow_piece,
        {"problem": problem(9), "options": tree_options(), "piece": piece(), "budget": budget()},
    ),
    "search_subsets": lambda: (
        _core.search_subsets,
        {**subset_arguments(), "seed": 0, "restarts": 3, "iterations": 3, "threads": 1},
    ),
    "solve_lap": lambda: (
        _core.solve_lap,
        {"cost": np.eye(N), "method": "jonker-volgenant", "epsilon": 0.1, "warm": permutation()},
    ),
    "tabu": lambda: (
        _core.tabu,
        {
            "problem": problem(),
            "seed": 0,
            "streams": 2,
            "iterations": 9,
            "threads": 1,
            "target": -1e9,
            "initial": [permutation()],
            "budget": budget(),
        },
    ),
    "time_sweeps": lambda: (_core.time_sweeps, {"problem": problem(), "count": 2}),
    "two_opt": lambda: (
        _core.two_opt,
        {
            "problem": problem(),
            "seed": 0,
            "restarts": 2,
            "kicks": 1,
            "threads": 1,
            "initial": [permutation()],
            "budget": budget(),
        },
    ),
}


def names_in_core() -> dict[str, set[str]]:
    """Every function and method that the core binds, with the names of its arguments."""
    found = {}
    owners = {"": _core, **{f"{name}.": kind for name, kind in vars(_core).items() if isinstance(kind, type)}}
    for prefix, owner in owners.items():
        for name in dir(owner):
            signatures = getattr(getattr(owner, name), "__nb_signature__", ())
            for text, *_ in signatures if isinstance(signatures, tuple) else ():
                plain = re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", text)))
                words = plain[plain.index("(") + 1 : plain.rindex(")")].split(",")
                arguments = {re.split(r"[:=]", word)[0].strip() for word in words} - {"*", "/", ""}
                found[prefix + name] = arguments - ({"self"} if name == "__init__" else set())
    return found


def odd_arrays(good: Any) -> Iterator[Any]:
    """Arrays of other shapes, types, orders and contents."""
    kind, shape = good.dtype, good.shape
    for other in [
        (0,) * good.ndim,
        (1,) * good.ndim,
        (*shape[:-1], 0),
        (0, *shape[1:]),
        (*shape, 1),
        (97,) * good.ndim,
    ]:
        yield np.zeros(other, kind)
    for axis in range(good.ndim):
        for change in (-1, 1):
            yield np.zeros([size + change * (at == axis) for at, size in enumerate(shape)], kind)
    yield np.zeros((), kind)
    yield from (good.astype(other) for other in (np.float64, np.float32, np.int64, np.uint8, bool, object, complex))
    yield np.asfortranarray(np.repeat(good, 2, axis=-1))[..., ::2]
    extremes: dict[str, list[Any]] = {
        "f": [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324],
        "i": [-1, -2, 4, 8, 97, 2**31 - 1, -(2**31)],
    }
    with np.errstate(over="ignore"):
        for value in extremes.get(kind.kind, [True]):
            yield np.full(shape, value).astype(kind)
            for place in (0, -1):
                changed = good.copy()
                changed.flat[place] = value
                yield changed
    yield np.zeros(shape, kind)
    yield np.ones(shape, kind)


def odd_values(name: str, good: Any) -> Iterator[Any]:
    """Bad values for an argument whose good value is given."""
    yield from (None, object(), "", "x" * 10_000, "\0", -1, 0, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63), 2**64)
    yield from (np.nan, np.inf, -np.inf, 1e308, b"", [], [None], {}, np.zeros(0))
    if isinstance(good, np.ndarray):
        yield from odd_arrays(good)
    elif isinstance(good, bytes) and good:
        yield from (good[:half] for half in (1, 8, len(good) // 2, len(good) - 1))
        yield from (good + good, bytes(len(good)), b"\xff" * len(good))
        rng = np.random.default_rng(0)
        for _ in range(20):
            changed = bytearray(good)
            changed[rng.integers(len(good))] ^= int(rng.integers(1, 256))
            yield bytes(changed)
    elif isinstance(good, list):
        single = isinstance(good[0], np.ndarray)
        for array in odd_arrays(good[0] if single else good[0][0]):
            yield from ([array], [*good, array]) if single else ([(array, array)], [(good[0][0], array)])
    elif type(good).__module__ == _core.__name__ and not isinstance(good, _core.BoundStatus):
        yield type(good).__new__(type(good))
    if isinstance(good, _core.Problem):
        yield from (problem(n, forbidden) for n in (1, 2, 3, 10) for forbidden in (False, True))
        square = np.arange(N) - np.arange(N)[:, None].astype(float)  # antisymmetric
        zero = np.zeros((N, N))
        for scale in (0.0, 5e-324, 1e-40, 1e10, 1e20, 1e30, 1e38, 1e100, 1e290):
            yield _core.Problem([(zero, zero)], np.full((N, N), scale), -scale)
            yield _core.Problem([(zero, zero)], scale * square, 0.0, np.eye(N, dtype=bool))
            yield _core.Problem([(scale * square, square)], square, 0.0)
            yield _core.Problem([(square, square)] * 3, scale * square, scale)
            yield _core.Problem([(scale * np.abs(square), np.abs(square))], zero, 0.0)
        yield _core.Problem([(square, square)], zero, 0.0, np.ones((N, N), bool))
    if isinstance(good, _core.TreeResult):
        used = tree()
        _core.SharedTree(problem(9), tree_options(), used)
        yield from (used, tree(5))
    if isinstance(good, _core.Stage):
        yield from (_core.Stage.from_certificate(duals(n), duals(n)) for n in (1, N + 1))
    if isinstance(good, _core.HahnGrant):
        yield ascent(taken=True)
    if isinstance(good, _core.SharedTree):
        good.finish(_core.BoundStatus.stalled)
        yield good
    if name == "budget":
        for attribute in ("remaining", "interrupted", "orphaned", "report", "keep", "fail"):
            for value in (RuntimeError("odd"), None, "x", np.nan, -1.0, np.float32(0.01), object()):
                yield budget(**{attribute: value})


def touch(value: Any, depth: int = 4) -> list[Any]:
    """Read every property of a result, and what they hold; return the arrays, which must outlive the result."""
    if isinstance(value, np.ndarray):
        value.sum()
        return [value]
    if isinstance(value, list | tuple):
        return [array for part in value[:50] for array in touch(part, depth)]
    if type(value).__module__ != _core.__name__ or depth == 0:
        return []
    properties = [name for name, kind in vars(type(value)).items() if isinstance(kind, property)]
    return [array for name in properties for array in touch(getattr(value, name), depth - 1)]


def call(function: Callable[..., Any], arguments: Arguments) -> None:
    """Call; the arrays of the result can still be read when the result and the arguments are gone."""
    given = dict(arguments)
    owner = given.pop("self", None)
    arrays = []
    try:
        result = function(**given) if owner is None and "self" not in arguments else function(owner, **given)
        arrays = touch(result) + touch(owner)
        del result
    except REFUSALS:
        pass
    except RuntimeError as error:  # what an odd budget raises comes back; so does a file that cannot be written
        if str(error) != "odd" and "path" not in arguments:
            raise
    except AttributeError:
        if not type(arguments.get("budget")).__name__ == "OddBudget":
            raise
    given.clear()
    arguments.clear()
    del owner
    gc.collect(0)
    for array in arrays:
        array.sum()


def main(name: str) -> None:
    """Call one function with every bad value of each argument."""
    function, good = CALLS[name]()
    call(function, dict(good))
    for argument in good:
        for number, value in enumerate(odd_values(argument, CALLS[name]()[1][argument])):
            sys.stdout.write(f"{name} {argument} {number} {repr(value)[:60]!r}\n")
            sys.stdout.flush()
            function, arguments = CALLS[name]()
            call(function, {**arguments, argument: value})


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1])
