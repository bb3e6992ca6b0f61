"""The result of a run, and everything that can be done with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.notebook import html_table
from blindmatch.problem.optimality import RELATIVE_TOLERANCE, tolerance
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify
from blindmatch.solvers.base import Proof
from blindmatch.solvers.progress import Progress, Status, relative_gap
from blindmatch.solving.pool import Pool
from blindmatch.validation import FloatArray, IntArray, as_partners, at_least

# The methods of a result lead to folders above this one, which are imported when they are called.
if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

    from blindmatch.report.match import Images
    from blindmatch.trust.prior import Prior
    from blindmatch.trust.report import Assessment


class Ranking(Protocol):
    """Ranks all targets as partners of each source."""

    @property
    def most(self) -> int:
        """How many targets there are."""

    def best(self, count: int) -> IntArray:
        """Indices of the best targets of each source, best first: (n, count)."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A match, its cost, what is proved about it, and what was matched.

    Attributes
    ----------
    permutation
        Source i is paired with target permutation[i], or with none if that is -1.
    cost
        The cost of the match, recomputed on the caller's data.
    lower_bound
        No match costs less: ``lower_bound <= optimum <= cost``. None if the solver proves nothing.
    upper_bound
        No match costs more, for a result of ``maximize=True``; of a minimum it is the cost:
        ``lower_bound <= optimum <= upper_bound`` holds for both.
    status
        "optimal": proved that no permutation is cheaper by more than one part in a million of the cost (or 1e-12 of the
        magnitude of the summed numbers). "time_limit", "gap_limit", "cost_limit", "bound_limit", "node_limit",
        "solution_limit" and "work_limit": this limit ended the run. "interrupted": Ctrl-C or the callback did.
        "stalled": the bound no longer rises. "heuristic": no claim.
    solver, seconds
        The solver, and the duration of its run.
    task
        What was matched: a ``bm.Task``; of ``bm.solve``, the ``bm.QAP`` that was solved.
    bound_name
        Which bound that is: "Gilmore-Lawler", "projection", "convex quadratic", "level-1 RLT", "semidefinite",
        "branch and bound", "enumeration", or the name of a third-party solver; empty if there is none.
    certificate
        The proof of the lower bound, for ``bm.verify``; None if there is none. After Ctrl-C, a large certificate is
        built when it is first accessed.
    pool
        Different matches, the cheapest first: as many as ``pool_size``, or the match alone.
    trace
        Bound and cost over time.
    notes
        What else there is to know, a sentence each.
    support
        For large matches by coordinates: how many other starts led to the same match. Do not believe a match without
        support. None if the match was found in another way.
    confidence
        For such matches: the probability that each pair is right, (n,), nan for sources without a partner.
    ranking
        Ranks the partners that `candidates` returns.
    whole
        The match before `min_confidence` left out pairs, which cost and bound are about; None if it left out none.
    assessment
        The last assessment, made here or saved with the match; None if there is none. Reports, tables and saved files
        have it.
    voted
        Whether what is matched was chosen by how well it matches, as the clusters of a ``BlindClassifier`` that votes.
        Such a match is not assessed: unrelated spaces would have to be chosen in the same way.
    title, settings
        What was matched and how, in words, for reports.
    """

    permutation: IntArray
    cost: float
    lower_bound: float | None
    status: Status
    solver: str
    seconds: float
    task: Task | QAP | None = None
    proof: Certificate | Proof | None = None
    pool: Pool | None = None
    maximum: float | None = None  # what is proved of a maximum: `upper_bound`
    trace: tuple[Progress, ...] = ()
    notes: tuple[str, ...] = ()
    bound_name: str = ""
    support: int | None = None
    confidence: FloatArray | None = None
    ranking: Ranking | None = None
    whole: IntArray | None = None
    assessment: Assessment | None = None
    voted: bool = False
    title: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    checked: tuple[Any, ...] | None = None  # the claims when they were checked: `sealed` sets it

    @property
    def problem(self) -> QAP:
        """The assignment problem: that of the task, or the one that was solved."""
        if self.task is None:
            raise ValueError("this result was made without a task: expected one from bm.match, bm.solve or bm.load")
        return self.task.problem if isinstance(self.task, Task) else self.task

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of the lower bound."""
        return self.proof.make(None) if isinstance(self.proof, Proof) else self.proof

    @property
    def upper_bound(self) -> float:
        """No optimum is larger: the cost of a minimum, what is proved of a maximum."""
        return self.cost if self.maximum is None else self.maximum

    def of_maximum(self, problem: QAP) -> Result:
        """The result of maximising `problem`, if this is that of minimising ``problem.negated()``."""
        cost, low = problem.objective(self.permutation), -self.cost  # the exact cost rounded up, and rounded down
        proved = math.inf if self.lower_bound is None else max(cost, -self.lower_bound)
        pool = self.pool and replace(self.pool, costs=np.array([problem.objective(one) for one in self.pool]))
        trace = tuple(now.negated() for now in self.trace)
        return replace(self, task=problem, cost=cost, lower_bound=low, maximum=proved, pool=pool, trace=trace).sealed()

    @property
    def gap(self) -> float | None:
        """(cost - lower_bound) / |cost|; 0.0 if they are equal up to rounding, None if nothing is proved.

        It is also None for a match of cost 0 that is not proved optimal, because a share of 0 is undefined.
        """
        gap = relative_gap(self.cost, self.lower_bound if self.maximum is None else self.maximum)
        # The cost is as small as its rounding error, so a relative gap means nothing; an optimal match has none.
        if self.status == "optimal" and self.lower_bound is not None and (gap is None or gap > RELATIVE_TOLERANCE):
            return 0.0
        return gap

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The match as pairs (source, target)."""
        return [(i, int(j)) for i, j in enumerate(self.permutation) if j >= 0]

    @property
    def left_out(self) -> int:
        """How many pairs `min_confidence` left out. Cost and bound are those of the whole match."""
        return 0 if self.whole is None else int((self.whole >= 0).sum() - (self.permutation >= 0).sum())

    @property
    def message(self) -> str:
        """The notes in one line."""
        return "; ".join(note.removesuffix(".") for note in self.notes)

    def candidates(self, k: int = 5) -> IntArray:
        """The k best partners of each source, best first: (n, k) target indices.

        They are ranked by their similarity (CSLS) after the rotation that fits the match, when they are asked for.
        """
        if self.ranking is None:
            raise ValueError("this result has no candidates: they are known of matches of 30 items or more by bm.match")
        if at_least(k, 1, "k") > self.ranking.most:
            raise ValueError(f"k={k}; there are {self.ranking.most} targets")
        return self.ranking.best(k)

    def verify(self) -> float:
        """The bound that the certificate proves for the task, recomputed by the independent checker.

        It is the lower bound, or of a maximum the upper one.
        """
        if self.certificate is None:
            raise ValueError(f"there is no certificate to verify: solver={self.solver!r} left none")
        if self.maximum is not None:
            return -verify(self.problem.negated(), self.certificate)
        problem, others = self.problem_of_size(self.certificate.size)
        return min(verify(problem, self.certificate), others)

    def problem_of_size(self, size: int) -> tuple[QAP, float]:
        """The problem that a certificate of this size is for, and the least cost of any match that it leaves out."""
        return self.task.of_size(size) if isinstance(self.task, Task) else (self.problem, math.inf)

    def assess(
        self,
        *,
        source_samples: Sequence[ArrayLike] | None = None,
        target_samples: Sequence[ArrayLike] | None = None,
        background: ArrayLike | None = None,
        prior: Prior | None = None,
        draws: int = 199,
        resamples: int = 40,
        regret: bool = True,
        time_limit: float | None = 60.0,
        rng: int | np.random.Generator | None = None,
        callback: Callable[[str, float], object] | None = None,
        threads: int | None = None,
    ) -> Assessment:
        """Assess whether the two spaces have structure in common, and which pairs can be believed.

        A large match (``docs/large.md``) is judged by its support and by the confidence that it already has.

        Parameters
        ----------
        source_samples, target_samples
            For each item, the (k, d) embeddings whose mean is its row, such as its images or its prompts. Stability is
            then measured on random halves of them; without samples, on resampled dimensions.
        background
            Other items of the target's space, at least as many as there are targets. Unrelated spaces are then drawn
            from them, which makes the test exact for any geometry; without it they are rotated copies of the target.
        prior
            The share of right pairs to expect in matches like this one, which a single match cannot show: confidence
            depends on it. Either a pair of arrays: other items of the source's and the target's space, row i of one
            being the partner of row i of the other, at least as many as are matched here. Random sets of them are
            matched in the same way, and the right pairs are counted. (With `kernels`: the kernels of such items.) Or a
            number between 0 and 1. None: as in the problems that the confidence was fitted to, where few pairs are
            right.
        draws
            The largest number of unrelated spaces to match. The smallest possible p-value is 1 / (draws + 1).
        resamples
            The number of resamples that measure the stability of pairs.
        regret
            Whether to prove how much more any match without a pair costs (up to 60 items).
        time_limit
            Seconds for all of it. What is not finished by then is missing or coarser, but never wrong.
        rng, threads
            As in ``bm.solve``.
        callback
            Called with the name of the running part and the share of it that is done, from 0 to 1.

        Examples
        --------
        >>> import numpy as np, blindmatch as bm
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((8, 5))
        >>> Y = X[::-1] + 0.05 * rng.standard_normal((8, 5))
        >>> trust = bm.match(X, Y, rng=0).assess(rng=0)
        >>> trust.p_value, bool(trust.confidence.min() > 0.8), trust.ambiguous
        (0.005, True, [])
        """
        from blindmatch.trust.assessment import AssessmentPlan, Schedule, assess_result

        task = self.task
        if not isinstance(task, Task):
            raise ValueError("an assessment compares two sets: expected a result of bm.match, not of bm.solve")
        plan = AssessmentPlan.of(task, (source_samples, target_samples), background, prior, draws, resamples, regret)
        found = assess_result(self, plan, Schedule.of(rng, threads, time_limit, callback))
        object.__setattr__(self, "assessment", found)  # what is shown and saved from now on
        return found

    def ask(
        self,
        k: int = 5,
        *,
        time_limit: float | None = 20.0,
        rng: int | np.random.Generator | None = 0,
        threads: int | None = None,
    ) -> list[tuple[int, list[int]]]:
        """The k sources whose partners a person should tell first, each with two or three likely targets.

        Near-optimal matches disagree on some items more than on others. The first question is the one whose answer
        rules out most of them, the second the one that adds most to the first. Give the answers back as `known_pairs`.

        Parameters
        ----------
        k
            The number of questions; fewer if fewer pairs are open.
        time_limit
            Seconds for the search of other matches.
        rng, threads
            As in ``bm.solve``.

        Examples
        --------
        >>> import numpy as np, blindmatch as bm
        >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [5.0, 7.0]])
        >>> result = bm.match(square, square[::-1], rng=0)
        >>> [source for source, candidates in result.ask(1)][0] in (1, 2)  # 0 and 3 are at other distances from 4
        True
        """
        from blindmatch.trust.questions import questions

        return questions(self, at_least(k, 1, "k"), time_limit=time_limit, rng=rng, threads=threads)

    def report(
        self,
        path: str | Path,
        *,
        trust: Assessment | None = None,
        truth: Sequence[int] | None = None,
        source_images: Images | None = None,
        target_images: Images | None = None,
        title: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the match to one HTML file that opens in any browser, without a network.

        Parameters
        ----------
        path
            The file to write, such as ``report.html``.
        trust
            From `assess`; by default the last assessment.
        truth
            The true partner of each source, -1 where it has none.
        source_images, target_images
            Pictures of the items, in order or by index: paths or bytes of PNG, JPEG, GIF or WebP files, or arrays of
            uint8.
        title, settings
            What was matched, and what else the report should say about the run.

        Examples
        --------
        >>> import tempfile, numpy as np, blindmatch as bm
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
        >>> result = bm.match(X, X[[3, 1, 0, 2]], source_names="abcd", rng=0)
        >>> result.report(Path(tempfile.mkdtemp()) / "report.html").name
        'report.html'
        """
        from blindmatch.report.html import write_report
        from blindmatch.report.match import Match

        match = Match(
            replace(
                self.rechecked(),
                title=self.title if title is None else title,
                settings={**self.settings, **(settings or {})},
            ),
            trust=trust or self.assessment,
            truth=None if truth is None else [int(j) for j in truth],
            source_images=source_images,
            target_images=target_images,
        )
        return write_report(path, match)

    def to_frame(self, trust: Assessment | None = None, candidates: int = 0) -> DataFrame:
        """A pandas DataFrame with a row for each source: source, target, and what is known about the pair.

        `source` and `target` are the names of the items, or their indices if they have none; `source_index` and
        `target_index` are always the indices. What is missing has no partner.

        Parameters
        ----------
        trust
            From `assess`, which adds the confidence; by default the last assessment.
        candidates
            How many of the best partners to add, where they are known.

        Examples
        --------
        >>> import numpy as np, blindmatch as bm
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
        >>> frame = bm.match(X, X[[3, 1, 0, 2]], source_names="abcd", rng=0).to_frame()
        >>> frame["source"].tolist(), frame["target_index"].tolist()
        (['a', 'b', 'c', 'd'], [2, 1, 3, 0])
        """
        from pandas import DataFrame

        from blindmatch.report.match import Match

        match = Match(self, trust=trust or self.assessment)
        indices = ["target_index", *(["target"] if match.target_names is None else [])]
        return DataFrame(match.table(candidates)).astype(dict.fromkeys(indices, "Int64"))

    def save(self, path: str | Path, trust: Assessment | None = None) -> Path:
        """Write one ``.npz`` file with the task, the match, the proof and the assessment. ``bm.load`` reads it.

        Examples
        --------
        >>> import tempfile, numpy as np, blindmatch as bm
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
        >>> path = bm.match(X, X[[3, 1, 0, 2]], rng=0).save(Path(tempfile.mkdtemp()) / "match.npz")
        >>> bm.load(path).status
        'optimal'
        """
        from blindmatch.matching.saved import save

        return save(self, path, trust or self.assessment)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        values = {
            "permutation": self.permutation.tolist(),
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "bound_name": self.bound_name,
            "gap": self.gap,
            "status": self.status,
            "solver": self.solver,
            "seconds": self.seconds,
            "message": self.message,
        }
        if self.support is not None:
            values["support"] = self.support
        if self.maximum is not None:
            values["upper_bound"] = self.maximum if math.isfinite(self.maximum) else None
        if self.pool is not None and len(self.pool) > 1:
            values["pool"] = {
                "permutations": self.pool.permutations.tolist(),
                "costs": self.pool.costs.tolist(),
                "complete": self.pool.complete,
            }
        if self.confidence is not None:
            values["confidence"] = [None if np.isnan(value) else float(value) for value in self.confidence]
        if self.left_out:
            values["left_out"] = self.left_out
        return values

    def sealed(self) -> Result:
        """The same result, marked as checked: cost, bound and status were just recomputed."""
        return replace(self, checked=self._claims)

    @property
    def _claims(self) -> tuple[Any, ...]:
        whole = self.permutation if self.whole is None else self.whole
        kept = self.permutation[self.permutation >= 0]
        return (
            whole.tolist(),
            bool((whole[self.permutation >= 0] == kept).all()),
            self.cost,
            self.lower_bound,
            self.maximum,
            self.status,
            id(self.task),
            id(self.proof),
        )

    def rechecked(self) -> Result:
        """The result with cost, bound and status recomputed from its task and its certificate.

        What was checked when the result was made, and has not been changed since, is not checked again.
        """
        if self.checked == self._claims:
            return self
        whole = self.permutation if self.whole is None else self.whole
        if isinstance(self.task, Task):
            whole = as_partners(whole, self.task.sizes, "permutation")
        if self.permutation.shape != whole.shape or (self.permutation >= 0)[self.permutation != whole].any():
            raise ValueError("permutation has pairs that are not in whole, the match before pairs were left out")
        searched = isinstance(self.task, Task) and self.task.too_large  # without an assignment problem
        if isinstance(self.task, Task) and searched and not self.task.crossed:
            note = f"The cost of {self.cost:.7g} is as stated: the match is too large to compute it again."
            return replace(self, lower_bound=None, bound_name="", status=self._without_proof, notes=(*self.notes, note))
        problem = self.task.bounding if isinstance(self.task, Task) and searched else self.problem
        if self.maximum is not None:
            opposite = replace(self, task=problem.negated(), maximum=None, lower_bound=-self.maximum)
            return opposite.rechecked().of_maximum(problem)
        full = self.task.completed(whole, "permutation") if isinstance(self.task, Task) and not searched else whole
        cost = self.task.cost(full) if isinstance(self.task, Task) else problem.objective(full)
        if not problem.allows(full):
            raise ValueError("permutation uses a forbidden pair, or lacks a known one")
        if self.certificate is None:
            notes = self.notes
            if self.lower_bound is not None:
                notes = (*notes, f"A lower bound of {self.lower_bound:.7g} is stated, without a certificate to check.")
            return replace(
                self, cost=cost, lower_bound=None, bound_name="", status=self._without_proof, notes=notes
            ).sealed()
        bound = min(self.verify(), cost)
        status: Status = "stalled" if self.status == "optimal" else self.status
        if cost - bound <= tolerance(problem, cost):
            status = "optimal"
        bound = bound if not math.isnan(bound) else -math.inf
        return replace(self, cost=cost, lower_bound=bound, status=status).sealed()

    @property
    def _without_proof(self) -> Status:
        return "heuristic" if self.status in ("optimal", "stalled") else self.status

    def __repr__(self) -> str:
        return f"Result({self._verdict} cost={self.cost:.7g}, {self.seconds:.2g} s by {self.solver})"

    def _repr_html_(self) -> str:
        """What a notebook shows: whether to believe it, the first pairs, and what is proved."""
        from blindmatch.report.belief import UNTESTED, belief
        from blindmatch.report.match import Match

        shown = Match(self, trust=self.assessment)
        headline = belief(shown).headline
        hint = ": result.assess()" if headline == UNTESTED else ""
        answer = f"<b>{escape(headline)}{hint}.</b> " if isinstance(self.task, Task) else ""
        proof = f"<p>{escape(self._verdict)} {escape(self.message)}</p>"
        return f"<p>{answer}</p>{html_table(shown.table())}{proof}" if answer else proof + html_table(shown.table())

    @property
    def _verdict(self) -> str:
        from blindmatch.report.verdict import verdict

        changed = "" if self.checked == self._claims else " (As stated, not checked.)"
        return verdict(self) + changed


def attach_result(error: BaseException, result: Result) -> None:
    """Give an exception the best result so far, as its attribute ``result``."""
    error.result = result  # type: ignore[attr-defined]
