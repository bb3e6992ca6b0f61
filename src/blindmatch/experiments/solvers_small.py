"""Tables 1 and 7: solvers on ten classes, with the optimum known by enumeration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from blindmatch.experiments.data import Catalogue
from blindmatch.experiments.matching_runs import (
    KNOWN,
    LINEUP,
    PAPER_NAMES,
    PairExperiment,
    by_pair,
    installed_solvers,
    label,
    match_pair,
    missing_note,
    paper_dataset,
    paper_model,
    paper_value,
    prototypes,
    seeded_pairs,
)
from blindmatch.experiments.protocol import Row, Trial
from blindmatch.experiments.result_tables import Cell, Spread, Table, mean, spread, table

REFERENCE = "brute-force"
_CLOSE = 1e-9  # relative difference between two sums of the same terms in different order


@dataclass(frozen=True)
class SolversSmall(PairExperiment):
    """Solvers on small problems, against the enumerated optimum.

    Attributes
    ----------
    solvers
        Names of ``bm.SOLVERS``, and "faq-published". Enumeration is added to check whether an optimum is global.
    """

    name = "solvers-small"
    about = "Solvers on small problems, against the enumerated optimum"
    shows = "Tables 1 and 7"
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 2, "time_limit": 10.0}
    solvers: tuple[str, ...] = LINEUP
    time_limit: float = 5400.0
    choices: ClassVar[Mapping[str, Collection[str]]] = {"solvers": KNOWN}

    def plan(self, catalogue: Catalogue) -> list[Trial]:
        """Each solver on each problem."""
        solvers = dict.fromkeys([REFERENCE, *installed_solvers(self.solvers)])
        return [
            pair.trial(self, solver=solver, seed=seed, **self.common)
            for pair, seed in seeded_pairs(self, catalogue)
            for solver in solvers
        ]

    def compute(self, run: Trial) -> dict[str, Any]:
        """Match the classes."""
        return match_pair(*prototypes(run), run.parameters)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """All problems together in the layout of Table 1, then each pair of models as in Table 7."""
        note = missing_note(self.solvers)
        optima = {_problem(row): row["cost"] for row in rows if row["solver"] == REFERENCE}
        lines = [[*line, *_paper(line[0])] for line in _lines(self.solvers, rows, optima)]
        first = table(
            "table-1",
            "Table 1: solvers over all pairs of models",
            [*_COLUMNS, ("paper: accuracy", 1), ("paper: cost", 2), ("paper: global", 1)],
            [[label(str(line[0])), *line[1:]] for line in lines],
            "Accuracy and global in percent, cost per N^2; global: the enumerated optimum was found.",
            "The paper's columns: DINOv2 with All-Roberta-large-v1 on CIFAR-10.",
            note,
        )
        each: list[list[Cell]] = []
        for (dataset, vision, language), of in sorted(by_pair(rows).items()):
            for line in _lines(self.solvers, of, optima):
                where = {"dataset": paper_dataset(dataset), "vision": paper_model(vision)}
                paper = PAPER_NAMES.get(str(line[0]), "")
                value = paper_value("table-7", "accuracy", language=paper_model(language), solver=paper, **where)
                each.append([paper_dataset(dataset), vision, language, *line, value])
        heads = [("dataset", 0), ("vision", 0), ("language", 0), *_COLUMNS, ("paper: accuracy", 1)]
        return [first, table("table-7", "Table 7: solvers on each pair of models", heads, each, note)]


_COLUMNS = [("solver", 0), ("accuracy", 1), ("cost", 3), ("global", 1), ("proved", 1), ("CPU s", 3), ("runs", 0)]


def _problem(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("dataset", "vision", "language", "seed"))


def _lines(solvers: Sequence[str], rows: Sequence[Row], optima: Mapping[tuple[Any, ...], float]) -> list[list[Cell]]:
    lines: list[list[Cell]] = []
    for solver in solvers:
        of = [row for row in rows if row["solver"] == solver]
        found = [
            100.0 * (row["cost"] <= optima[_problem(row)] + _CLOSE * abs(row["cost"]))
            for row in of
            if _problem(row) in optima
        ]
        proved = mean(100.0 * (row["status"] == "optimal") for row in of)
        seconds = mean(row["cpu_seconds"] for row in of)
        accuracy, cost = spread(100 * row["accuracy"] for row in of), spread(row["cost"] for row in of)
        lines.append([solver, accuracy, cost, spread(found), proved, seconds, len(of)])
    return lines


def _paper(solver: Cell) -> list[float | Spread | None]:
    name = PAPER_NAMES.get(str(solver), "")
    return [paper_value("table-1", column, solver=name) for column in ("accuracy", "cost", "global")]
