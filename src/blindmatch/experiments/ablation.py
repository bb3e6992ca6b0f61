"""Tables 1, 4, 5 and 7: Hahn-Grant with and without each improvement; solvers on ten classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from blindmatch.experiments import TABLES
from blindmatch.experiments import matching_runs as runs
from blindmatch.experiments.data import Catalogue
from blindmatch.experiments.matching_runs import PAIR, paper_dataset, paper_model, paper_value
from blindmatch.experiments.protocol import Experiment, Row, Trial
from blindmatch.experiments.result_tables import Cell, Table, group_by, make_table, mean, percent, proved_share, spread
from blindmatch.problem.distortions import InnerProduct
from blindmatch.solvers.base import Solver
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant, HahnGrant
from blindmatch.solving.run import solve
from blindmatch.validation import FloatArray

# Each row of the paper's tables adds one change to the row above; only the two LAP solvers are alternatives.
_PLAIN: Mapping[str, Any] = {"evaluate_laps": False, "primal_heuristic": False}
VARIANTS: dict[str, Solver] = {
    "Hahn-Grant": HahnGrant(),
    "+ factorized": FactorizedHahnGrant(lap="hungarian", **_PLAIN),
    "+ auction": FactorizedHahnGrant(lap="auction", **_PLAIN),
    "+ Jonker-Volgenant": FactorizedHahnGrant(**_PLAIN),
    "+ LAP solutions": FactorizedHahnGrant(primal_heuristic=False),
    "+ primal heuristic": FactorizedHahnGrant(),
    "dual-ascent": DualAscent(),
    "branch-and-bound": BranchAndBound(),
}
OURS = ("dual-ascent", "branch-and-bound")
_PAPER_TABLES = {100: "table-4", 40: "table-5"}


@dataclass(frozen=True)
class Ablation(Experiment):
    """The effect of each change to Hahn-Grant."""

    name = "ablation"
    seeds: int = 5
    # sizes, time_limits: numbers of vectors, and the seconds for each size (one value for all, or one for each)
    sizes: tuple[int, ...] = (40, 100)
    time_limits: tuple[float, ...] = (3600.0, 7200.0)
    dimension: int = 1024  # dimension of the vectors
    variants: tuple[str, ...] = tuple(VARIANTS)  # rows of the table
    share: float = 0.01  # our solvers get this share of the time limit
    choices: ClassVar[Mapping[str, Collection[str]]] = {"variants": VARIANTS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.time_limits) not in (1, len(self.sizes)):
            raise ValueError(f"time_limits has {len(self.time_limits)} values for {len(self.sizes)} sizes")
        if not min(self.time_limits) > 0 or not min(self.sizes) > 1:
            raise ValueError(f"time_limits={self.time_limits}, sizes={self.sizes}; expected seconds and sizes above 1")

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each variant on each instance."""
        limits = self.time_limits * (len(self.sizes) if len(self.time_limits) == 1 else 1)
        return [
            self.run(
                {
                    "variant": variant,
                    "size": size,
                    "seed": seed,
                    "dimension": self.dimension,
                    "time_limit": limit * (self.share if variant in OURS else 1.0),
                }
            )
            for size, limit in zip(self.sizes, limits, strict=True)
            for seed in range(self.seeds)
            for variant in self.variants
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Solve one instance; cost and bound are per pair of items."""
        p = run.parameters
        problem = InnerProduct(standardize=False, normalize=True).problem(
            *random_vectors(p["size"], p["dimension"], p["seed"])
        )
        result = solve(problem, VARIANTS[p["variant"]], time_limit=p["time_limit"], rng=p["seed"], threads=1)
        pairs = p["size"] ** 2
        return {
            "cost": result.cost / pairs,
            "bound": None if result.lower_bound is None else result.lower_bound / pairs,
            "status": result.status,
            "seconds": result.seconds,
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """One table per size, with the paper's numbers if it has that size."""
        tables = []
        for size in self.sizes:
            own, paper = [row for row in rows if row["size"] == size], _PAPER_TABLES.get(size)
            lines = []
            for variant in self.variants:
                of = [row for row in own if row["variant"] == variant]
                gap = mean(row["cost"] - row["bound"] for row in of if row["bound"] is not None)
                means = [mean(row[name] for row in of) for name in ("cost", "bound", "cpu_seconds")]
                known = [paper_value(paper, name, solver=variant) for name in ("cost", "bound")] if paper else []
                lines.append([variant, *means[:2], gap, means[2], len(of), *known])
            number = paper.replace("table-", "Table ") if paper else "Like Tables 4 and 5"
            limits = ", ".join(f"{limit:g}" for limit in dict.fromkeys(row["time_limit"] for row in own))
            note = f"Time limits in wall-clock seconds: {limits}." if limits else ""
            heads = [each for each in TABLES["ablation"]["columns"] if paper or not each[0].startswith("paper")]
            name, words = paper or f"ablation-{size}", {"number": number, "size": size}
            tables.append(make_table(name, lines, note, kind="ablation", columns=heads, **words))
        return tables


def random_vectors(size: int, dimension: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Two sets of standard normal vectors."""
    rng = np.random.default_rng([seed, size, dimension])
    return rng.normal(size=(size, dimension)), rng.normal(size=(size, dimension))


REFERENCE = "brute-force"
_CLOSE = 1e-9  # relative difference between two sums of the same terms in different order


@dataclass(frozen=True)
class SolversSmall(runs.PairExperiment):
    """Solvers on small problems, against the enumerated optimum."""

    name = "solvers-small"
    # names of ``bm.SOLVERS``, and "faq-published". Enumeration is added to check whether an optimum is global.
    solvers: tuple[str, ...] = runs.LINEUP
    time_limit: float = 5400.0
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solvers": runs.KNOWN}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each solver on each problem."""
        solvers = dict.fromkeys([REFERENCE, *runs.installed_solvers(self.solvers)])
        return [
            self.trial(vision, language, solver=solver, seed=seed)
            for vision, language, seed in self.pairs(catalogue, self.seeds)
            for solver in solvers
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match the classes."""
        return runs.match_pair(*runs.prototypes(run), run.parameters)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """All problems together in the layout of Table 1, then each pair of models as in Table 7."""
        note = runs.missing_note(self.solvers)
        optima = {_problem(row): row["cost"] for row in rows if row["solver"] == REFERENCE}
        lines: list[list[Cell]] = []
        for solver, *line in _lines(self.solvers, rows, optima):
            name = runs.PAPER_NAMES.get(str(solver), "")
            paper = [paper_value("table-1", column, solver=name) for column in ("accuracy", "cost", "global")]
            lines.append([runs.label(str(solver)), *line, *paper])
        first = make_table("table-1", lines, note)
        each: list[list[Cell]] = []
        for (dataset, vision, language), of in sorted(group_by(rows, *PAIR).items()):
            for line in _lines(self.solvers, of, optima):
                where = {"dataset": paper_dataset(dataset), "vision": paper_model(vision)}
                where |= {"language": paper_model(language), "solver": runs.PAPER_NAMES.get(str(line[0]), "")}
                value = paper_value("table-7", "accuracy", **where)
                each.append([paper_dataset(dataset), vision, language, *line, value])
        return [first, make_table("table-7", each, note)]


def _problem(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*PAIR, "seed"))


def _lines(solvers: Sequence[str], rows: Sequence[Row], optima: Mapping[tuple[Any, ...], float]) -> list[list[Cell]]:
    lines: list[list[Cell]] = []
    for solver in solvers:
        of = [row for row in rows if row["solver"] == solver]
        known = [(row["cost"], optima[_problem(row)]) for row in of if _problem(row) in optima]
        optimal = spread(100.0 * (cost <= least + _CLOSE * abs(cost)) for cost, least in known)
        seconds, cost = mean(row["cpu_seconds"] for row in of), spread(row["cost"] for row in of)
        lines.append([solver, percent(of), cost, optimal, proved_share(of), seconds, len(of)])
    return lines
