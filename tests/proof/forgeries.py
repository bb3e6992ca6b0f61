"""Forged certificates of small problems. Each comes with its problem, whose optimum is known in exact arithmetic.

python tests/proof/forgeries.py [COUNT] [SEED]     forge so many, and print the table of docs/faults.md
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is run as a program

from matrices import forged_factor
from proofs import branching_certificate, random_stage
from strategies import KINDS, random_problem

import blindmatch as bm
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant

LARGEST = float(np.finfo(np.float64).max)
SPECIAL = (0.0, 5e-324, 2.0**-1022, 1.0, 1e150, 1e249, 1e250, 1e251, 1e300, LARGEST / 4, LARGEST, math.inf, math.nan)
Forger = Callable[[bm.QAP, Certificate, np.random.Generator], Certificate]


def random_target(rng: np.random.Generator) -> bm.QAP:
    """A problem of 1 to 5 items: any kind, integer or not, with numbers of any size that `QAP` takes."""
    kind, n = str(rng.choice(KINDS)), int(rng.choice([1, 2, 3, 4, 4, 5, 5]))
    share = float(rng.choice([0.0, 0.0, 0.3, 0.6]))
    integer, linear = bool(rng.random() < 0.4), bool(rng.random() < 0.5)
    problem = random_problem(int(rng.integers(2**32)), n, kind, integer=integer, linear=linear, forbidden=share)
    if rng.random() < 0.5:
        return problem
    # Any power of two, as long as the costs stay below 1e200: huge times tiny, tiny times tiny, sparse.
    power = int(rng.choice([int(rng.integers(-2100, 600)), 0, -1070, -1080]))
    first = int(rng.integers(max(-1073, power - 900), min(900, power + 1073)))
    factors = [(_scaled(A, first, rng), _scaled(B, power - first, rng)) for A, B in problem.factors]
    linear_term, constant = np.ldexp(problem.linear, max(power, -1074)), math.ldexp(problem.constant, power)
    return bm.QAP.from_factors(factors, linear_term, constant, forbidden=problem.forbidden)


def _scaled(matrix: np.ndarray, exponent: int, rng: np.random.Generator) -> np.ndarray:
    scaled = np.ldexp(matrix, exponent)
    return np.where(rng.random(matrix.shape) < 0.3, 0.0, scaled) if rng.random() < 0.3 else scaled


def exact_optimum(problem: bm.QAP) -> Fraction | None:
    """The least cost without any rounding, None where every permutation uses a forbidden pair."""

    def whole(values: np.ndarray) -> np.ndarray:  # every float64 is a multiple of 2^-1074
        return np.array([int(Fraction(float(x)) * 2**1074) for x in values.ravel()], dtype=object).reshape(values.shape)

    factors = [(whole(A), whole(B)) for A, B in problem.factors]
    linear, constant = whole(problem.linear), int(Fraction(problem.constant) * 2**1074)
    costs = []
    for p in permutations(range(problem.n)):
        if problem.allows(np.array(p)):
            single = sum(linear[i, j] for i, j in enumerate(p)) + constant
            costs.append(single * 2**1074 + sum((A * B[np.ix_(p, p)]).sum() for A, B in factors))
    return Fraction(min(costs), 2**2148) if costs else None


def any_floats(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of every exponent, of one exponent, or special ones; float16, float32 or float64."""
    signs = rng.choice([-1.0, 1.0], shape)
    kind = rng.integers(3)
    if kind == 0:
        values = signs * np.exp2(rng.uniform(-1074, 1023.9, shape))
    elif kind == 1:
        values = signs * np.exp2(rng.uniform(-1074, 1023.9)) * rng.choice([1.0, 0.5, 0.0], shape)
    else:
        values = signs * rng.choice(SPECIAL, shape)
    return values.astype(rng.choice(["f2", "f4", "f8", "f8"]))


def slices_of_one_size(shape: tuple[int, ...], size: float, rng: np.random.Generator) -> np.ndarray:
    """Zeros but for some lines or planes of one number, so that sums overflow on one side only."""
    values = np.zeros(shape)
    for _ in range(int(rng.integers(1, 4))):
        where = tuple(slice(None) if rng.random() < 0.6 else int(rng.integers(m)) for m in shape)
        values[where] = size * rng.choice([-1.0, 1.0])
    return values


def _plain(stage: Stage) -> Certificate:
    return Certificate(stage.size, (Node(stages=(stage,)),))


def _free(n: int) -> np.ndarray:
    return np.zeros((n, n), dtype=bool)


def overflow(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """Sums that overflow to one infinity and not to the other."""
    n, size = problem.n, float(rng.choice([1e249, 1e250, 1e290, 1e300, 1e307, LARGEST / 2, LARGEST]))
    U, V = np.zeros((n, n, n)), np.zeros((n, n, n))
    U[int(rng.integers(n)), :, 1:] = size * rng.choice([-1.0, 1.0])
    duals = np.full(n, rng.choice([-1.0, 1.0]) * rng.choice([size, LARGEST]))
    if rng.random() < 0.5:
        U, V = (slices_of_one_size((n, n, n), size, rng) for _ in range(2))
        duals = slices_of_one_size((n,), float(rng.choice([size, LARGEST])), rng)
    return _plain(Stage(U, V, duals, _free(n)))


def any_duals(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """Duals of the whole range of floats."""
    n = problem.n
    U, V = any_floats((n, n, n), rng), any_floats((n, n, n), rng)
    return _plain(Stage(U, V, any_floats((n,), rng).astype(np.float64), _free(n)))


def damaged(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """A good proof in which a few numbers are replaced."""
    stage = solved.nodes[-1].stages[0]
    name = str(rng.choice(["U", "V", "column_duals"]))
    array = getattr(stage, name).copy()
    hit = rng.random(array.shape) < rng.choice([0.02, 0.2, 1.0])
    with np.errstate(over="ignore"):
        array[hit] = any_floats((int(hit.sum()),), rng).astype(array.dtype)
    return replace(
        solved, nodes=(*solved.nodes[:-1], replace(solved.nodes[-1], stages=(replace(stage, **{name: array}),)))
    )


def gauge(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """A good proof plus huge numbers that cancel exactly: whatever rounding loses must be subtracted."""
    stage, m = solved.nodes[-1].stages[0], solved.nodes[-1].stages[0].size
    U, duals = stage.U.astype(np.float64), stage.column_duals.copy()
    size = max(problem.scale, 1e-300) * 10.0 ** rng.uniform(-3, 40)
    for _ in range(3 * m):
        i, k = rng.integers(m, size=2)
        shift = size * rng.standard_normal()
        U[i, :, k] += shift
        U[k, :, i] -= shift
    duals += size * rng.standard_normal() * rng.integers(2)
    stage = replace(stage, U=U, column_duals=duals)
    return replace(solved, nodes=(*solved.nodes[:-1], replace(solved.nodes[-1], stages=(stage,))))


def tree(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """A tree whose nodes hold forged duals, with a child missing, twice, or in the place of another."""
    certificate = branching_certificate(problem, rng, depth=int(rng.integers(1, 4)))
    nodes = []
    for node in certificate.nodes:
        forged = node.stages
        if forged and rng.random() < 0.7:
            m = forged[0].size
            rest = bm.QAP(np.zeros((m, m)), np.zeros((m, m)))
            forged = (overflow if rng.random() < 0.5 else any_duals)(rest, solved, rng).nodes[0].stages
        nodes.append(replace(node, stages=forged))
    for _ in range(int(rng.integers(3))):
        index = int(rng.integers(len(nodes)))
        node = nodes[index]
        if index and rng.random() < 0.5:
            nodes.append(node)
        elif node.pair is not None:
            nodes[index] = replace(node, pair=(node.pair[0], int(rng.integers(problem.n))))
    return Certificate(problem.n, tuple(nodes), certificate.forced)


def matrix_tree(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """A tree whose nodes hold symmetric matrices of any kind, some with masks that nobody ruled out."""
    certificate = branching_certificate(problem, rng, depth=int(rng.integers(1, 4)))
    nodes = []
    for node in certificate.nodes:
        stages = []
        for stage in node.stages:
            mask = rng.random(stage.forbidden.shape) < rng.choice([0.0, 0.0, 0.3])
            stage = replace(stage, forbidden=mask)
            stages.append(replace(stage, factor=forged_factor(rng, stage.pair_count + 1)))
        nodes.append(replace(node, stages=tuple(stages)))
    if rng.random() < 0.5:
        del nodes[int(rng.integers(len(nodes))) :]
    return Certificate(problem.n, tuple(nodes) or (Node(),), certificate.forced)


def skipping_tree(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """The tree of all permutations, with branches cut off and excuses for it: symmetries, masks, other lines."""
    certificate, duals = branching_certificate(problem, rng, depth=problem.n), rng.random() < 0.3
    gone: set[int] = set()
    cut = {int(index) for index in rng.integers(1, max(2, len(certificate.nodes)), 2)}
    number: dict[int, int] = {}
    nodes: list[Node] = []
    for index, node in enumerate(certificate.nodes):
        if index and (index in cut or node.parent in gone):
            gone.add(index)
            continue
        number[index] = len(nodes)
        parent = number[node.parent] if index else -1
        stages = node.stages if duals else ()
        nodes.append(replace(node, parent=parent, stages=stages, skipped=_excuses(problem.n, rng)))
    return Certificate(problem.n, tuple(nodes), certificate.forced, _symmetries(problem.n, rng))


def _excuses(n: int, rng: np.random.Generator) -> tuple[tuple[int, int, int], ...]:
    triples = rng.integers(-1, n + 1, (int(rng.integers(2 * n)), 3)).tolist()
    return tuple((a, b, c) for a, b, c in triples)


def _symmetries(n: int, rng: np.random.Generator) -> tuple[tuple[int, np.ndarray], ...]:
    images = []
    for _ in range(3):
        image = rng.permutation(n) if rng.random() < 0.8 else rng.integers(-1, n + 1, int(rng.integers(n + 2)))
        images.append((int(rng.integers(-1, 3)), image))
    return tuple(images)


def forced(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """Pairs that are said to be forced."""
    pairs = rng.integers(-1, problem.n + 1, (int(rng.integers(1, problem.n + 2)), 2)).tolist()
    if rng.random() < 0.7:  # a permutation, whole or in part: the kind of lie that could pass
        pairs = list(enumerate(rng.permutation(problem.n).tolist()))[: int(rng.integers(1, problem.n + 1))]
    nodes = solved.nodes if rng.random() < 0.5 else (Node(),)
    return Certificate(problem.n, nodes, tuple((i, j) for i, j in pairs))


def indices(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """Trees with wrong parents (cycles among them), pairs, lines and sizes."""
    certificate = branching_certificate(problem, rng, depth=int(rng.integers(1, 4)))
    nodes = list(certificate.nodes)
    for _ in range(int(rng.integers(1, 3))):
        index = int(rng.integers(len(nodes)))
        a, b = (int(value) for value in rng.integers(-2, problem.n + 2, 2))
        size = int(rng.integers(1, problem.n + 2))
        change = [
            {"parent": int(rng.integers(-2, len(nodes) + 1))},
            {"pair": (a, b)},
            {"line": (a, b)},
            {"line": (int(rng.integers(2)), b)},
            {"stages": (random_stage(rng, size),)},
        ][int(rng.integers(5))]
        nodes[index] = replace(nodes[index], **change)
    return Certificate(problem.n, tuple(nodes))


def masks(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """Stages that leave out pairs which nobody ruled out, one after the other."""
    node, stages = solved.nodes[-1], []
    first = node.stages[0]
    for _ in range(int(rng.integers(1, 5))):
        mask = rng.random((first.size, first.size)) < rng.choice([0.1, 0.5, 0.9, 1.0])
        if rng.random() < 0.3:
            mask[:] = True
            mask[np.arange(first.size), rng.permutation(first.size)] = False
        stage = first if rng.random() < 0.5 else random_stage(rng, first.size, float(rng.choice([0.0, 1.0, 1e200])))
        stages.append(replace(stage, forbidden=mask))
    if rng.random() < 0.5:
        stages.insert(0, first)
    return replace(
        solved, nodes=(*solved.nodes[:-1], replace(node, stages=tuple(stages), spectral=bool(rng.integers(2))))
    )


def spectral(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """The projection bound, which the certificate can only ask for, at the root or at every node of a tree."""
    certificate = branching_certificate(problem, rng, depth=int(rng.integers(0, 3)))
    return replace(certificate, nodes=tuple(replace(node, stages=(), spectral=True) for node in certificate.nodes))


def convex(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """The convex quadratic bound around any points: permutations, noise, numbers of any size, up to the limit."""
    certificate = branching_certificate(problem, rng, depth=int(rng.choice([0, 0, 0, 1, 2])))
    nodes = []
    for node in certificate.nodes:
        n = node.stages[0].size if node.stages else 1
        point = rng.choice(["permutation", "noise", "floats", "ones"])
        X = np.eye(n)[rng.permutation(n)]
        if point == "noise":
            X = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-20, 2.4)
        elif point == "floats":
            X = np.clip(any_floats((n, n), rng).astype(np.float64), -1e3, 1e3)
        elif point == "ones":
            X = np.full((n, n), rng.choice([1 / n, 1e3, -1e3, 5e-324, 0.0]))
        nodes.append(replace(node, stages=(), point=X))
    return replace(certificate, nodes=tuple(nodes))


def factors(problem: bm.QAP, solved: Certificate, rng: np.random.Generator) -> Certificate:
    """A good proof with a factor of any floats: huge, tiny, infinite, NaN; sometimes one that cancels nearly all."""
    node = solved.nodes[-1]
    stage = node.stages[0]
    shape = stage.pair_count + 1, int(rng.integers(0, stage.pair_count + 2))
    F = any_floats(shape, rng)
    if rng.random() < 0.7:
        F = np.clip(F.astype(np.float64) * 10.0 ** -float(rng.integers(0, 200)), -1e120, 1e120)
        F *= rng.random(shape) < rng.choice([0.1, 1.0])
    stage = replace(stage, factor=F)
    return replace(solved, nodes=(*solved.nodes[:-1], replace(node, stages=(stage, *node.stages))))


def other_problem(problem: bm.QAP, _: Certificate, rng: np.random.Generator) -> Certificate:
    """The proof of another problem of the same size."""
    return _solved(random_problem(int(rng.integers(2**32)), problem.n, "symmetric"))


FORGERS: dict[str, Forger] = {
    function.__name__: function
    for function in (
        overflow, any_duals, damaged, gauge, tree, matrix_tree, skipping_tree, forced, indices, masks, spectral,
        convex, factors, other_problem,
    )
}  # fmt: skip


def _solved(problem: bm.QAP) -> Certificate:
    """A proof worth forging: duals of few sweeps on all pairs."""
    n = problem.n
    empty = Stage(np.zeros((n, n, n)), np.zeros((n, n, n)), np.zeros(n), _free(n))
    if problem.forbidden is None and 1e-280 < problem.scale < 1e190:
        result = bm.solve(problem, FactorizedHahnGrant(primal_heuristic=False, max_sweeps=20), rng=0, threads=1)
        if result.certificate is not None and result.certificate.nodes[0].stages:
            return result.certificate
    return _plain(empty)


def forgeries(count: int, seed: int) -> Iterator[tuple[str, bm.QAP, Fraction | None, Certificate]]:
    """So many forged certificates, with the problem and its optimum; each problem gets one of every kind."""
    made = 0
    while made < count:
        rng = np.random.default_rng([seed, made])
        problem = random_target(rng)
        optimum, solved = exact_optimum(problem), _solved(problem)
        for name, forge in FORGERS.items():
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                certificate = forge(problem, solved, rng)
            yield name, problem, optimum, certificate
            made += 1
            if made == count:
                return


def verdict(problem: bm.QAP, optimum: Fraction | None, certificate: Certificate) -> str:
    """What the checker says: refused, proves nothing, proves something true, or FALSE."""
    try:
        bound = bm.verify(problem, certificate, threads=1)
    except ValueError:
        return "refused"
    if bound == -math.inf:
        return "nothing"
    if math.isnan(bound):
        return "FALSE"
    return "true" if optimum is None or (bound < math.inf and Fraction(bound) <= optimum) else "FALSE"


def through_a_file(certificate: Certificate, folder: str | Path) -> Certificate:
    """The certificate as a stranger would send it."""
    path = Path(folder) / "forged.npz"
    certificate.save(path)
    return Certificate.load(path)


def main(arguments: list[str]) -> int:
    count, seed = int(arguments[0]) if arguments else 20_000, int(arguments[1]) if arguments[1:] else 0
    table: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for index, (name, problem, optimum, certificate) in enumerate(forgeries(count, seed)):
            found = verdict(problem, optimum, certificate)
            if index % 10 == 0 and not (name == "skipping_tree" or certificate.symmetries):
                try:
                    again = verdict(problem, optimum, through_a_file(certificate, folder))
                except ValueError:
                    again = "refused"
                found = "FALSE" if "FALSE" in (found, again) else found
            table[name, found] += 1
            if found == "FALSE":
                sys.stdout.write(f"FALSE: forgery {index} of seed {seed}, {name}, {problem!r}\n")
    sys.stdout.write("| forgery | certificates | refused | prove nothing | prove a true bound | FALSE |\n")
    for name in FORGERS:
        row = [table[name, kind] for kind in ("refused", "nothing", "true", "FALSE")]
        sys.stdout.write(f"| {name} | {sum(row)} | {' | '.join(map(str, row))} |\n")
    return sum(number for (_, found), number in table.items() if found == "FALSE")


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
