"""What the commands read: a problem from one file, or from two files of embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from blindmatch.cli.items import ItemOptions, Pictures
from blindmatch.cli.pairs import PairOptions
from blindmatch.io.embeddings import Embeddings, load_embeddings
from blindmatch.matching.match import small_problem, without_dummies
from blindmatch.problem.distortion import as_distortion
from blindmatch.problem.files import load_problem
from blindmatch.problem.qap import QAP
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray

Names = tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Loaded:
    """A problem, and what is known about its items.

    `cost_beyond` is what matches cost at least that the problem leaves out, because it has fewer dummies than items
    may stay unmatched.
    """

    problem: QAP
    kernels: tuple[FloatArray, FloatArray] | None = None
    source_names: Names = None
    target_names: Names = None
    cost_beyond: float = math.inf
    truth: list[int] | None = None
    images: tuple[Pictures | None, Pictures | None] = (None, None)

    def unpadded(self, result: Result) -> Result:
        """The result for the items that there are: sets are filled up with dummies to solve."""
        if self.kernels is None:
            return result
        return without_dummies(result, *(len(kernel) for kernel in self.kernels))


@dataclass(frozen=True)
class Search:
    """How a quick search for a small problem is run."""

    seed: int
    time_limit: float | None
    threads: int | None


@dataclass(frozen=True)
class ProblemFile:
    """A quadratic assignment problem in a file."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.path,)

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {"problem": self.path.name}

    def load(self) -> Loaded:
        """Read the file."""
        return Loaded(load_problem(self.path))

    def load_for_certificate(self, size: int) -> Loaded:
        """Read the file; it holds one problem, and the checker complains if the certificate has another `size`."""
        return self.load()


@dataclass(frozen=True)
class EmbeddingFiles:
    """Two files of embeddings, and how they are compared."""

    source: Path
    target: Path
    distortion: str = "gw"
    standardize: bool = True
    pairs: PairOptions = field(default_factory=PairOptions)
    items: ItemOptions = field(default_factory=ItemOptions)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return (self.source, self.target, *self.pairs.paths, *self.items.paths)

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {
            "source": self.source.name,
            "target": self.target.name,
            "distortion": self.distortion,
            "standardize": str(self.standardize),
            **self.pairs.settings,
        }

    def embeddings(self) -> tuple[Embeddings, Embeddings]:
        """Source and target, with their names."""
        return self.items.named(load_embeddings(self.source), load_embeddings(self.target))

    def load(self, search: Search) -> Loaded:
        """Read the files and build the problem, with no more dummies than needed."""
        return self._loaded(None, search)

    def load_for_certificate(self, size: int) -> Loaded:
        """The problem of that size, and what matches cost that it leaves out."""
        return self._loaded(size, None)

    def _loaded(self, size: int | None, search: Search | None) -> Loaded:
        distortion = as_distortion(self.distortion, self.standardize)
        source, target = self.embeddings()
        truth, images = self.items.partners(source, target), self.items.pictures(source, target)
        K, G = distortion.kernels(source.values, target.values)
        hints, beyond = self.pairs.hints(source, target), math.inf
        if search is not None:
            limit, threads = search.time_limit, search.threads
            problem = small_problem(distortion, K, G, hints, rng=search.seed, time_limit=limit, threads=threads)
        else:
            dummies = min(max((size or 0) - max(len(K), len(G)), 0), hints.max_unmatched)
            problem = hints.problem(distortion, K, G, dummies)
            beyond = hints.cost_beyond(distortion, dummies, problem.scale)
        return Loaded(problem, (K, G), source.names, target.names, beyond, truth, images)
