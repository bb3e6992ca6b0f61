"""Compare models: all pairs of models of the same items, matched blindly, with measures and a picture."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.errors import unknown_name
from blindmatch.geometry.views import Views
from blindmatch.io.embeddings import as_embeddings
from blindmatch.io.files import reading, refuse_missing_folder, text_of, write_text
from blindmatch.machine import usable_cores
from blindmatch.matching.match import SolveOptions, match_task
from blindmatch.notebook import html_table
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import CKA, MutualKNN
from blindmatch.problem.task import QUADRATIC, Task
from blindmatch.report.html import fill
from blindmatch.report.plots import axes_or_new
from blindmatch.solvers.base import Solver
from blindmatch.validation import FloatArray, IntArray, as_generator, at_least, positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame  # type: ignore[import-untyped]

_NEIGHBOURS = 5  # of Mutual k-NN
VALUES = ("accuracy", "cka", "mutual_knn", "truth_loss", "p_value")


@dataclass(frozen=True)
class ComparedPair:
    """Two models, compared; losses and the bound are divided by items^2."""

    one: str
    other: str
    items: int  # that both have
    cka: float  # centred kernel alignment: at most 1, higher is better
    mutual_knn: float  # the mean share of common neighbours among five: the same
    truth_loss: float  # of the true pairing
    loss: float  # of the blind match
    lower_bound: float | None
    accuracy: float  # the share of items that the blind match pairs with themselves
    proved: bool  # whether no other pairing costs less than the match
    p_value: float | None  # how often unrelated spaces match as well; None if that was not tested
    match: tuple[int, ...] = field(repr=False)  # the partner of each item in the blind match; not in the table
    stated: bool = False  # whether all this is as the store says: nothing of it was computed again

    @classmethod
    def read(cls, values: dict[str, Any], names: tuple[str, str], items: int) -> ComparedPair | None:
        """The pair that a line of a store states; None if it is not one of these models and items."""
        try:
            pair = cls(**{**values, "match": tuple(values["match"])})
            possible = (
                all(map(math.isfinite, (pair.cka, pair.mutual_knn, pair.truth_loss, pair.loss)))
                and 0 <= pair.accuracy <= 1
                and 0 <= (pair.p_value or 0.0) <= 1
                and (pair.lower_bound is None or pair.lower_bound <= pair.loss)
                and isinstance(pair.proved, bool)
                and (pair.one, pair.other, pair.items) == (*names, items)
                and sorted(pair.match) == list(range(items))
            )
        except (TypeError, KeyError, OverflowError):
            return None
        return replace(pair, stated=True) if possible else None


@dataclass(frozen=True)
class Comparison:
    """All pairs of several models.

    Attributes
    ----------
    names
        The models.
    pairs
        What was found about each two of them: fewer after Ctrl-C.
    interrupted
        Whether Ctrl-C ended it.
    """

    names: tuple[str, ...]
    pairs: tuple[ComparedPair, ...]
    interrupted: bool = False

    @property
    def table(self) -> dict[str, list[Any]]:
        """Columns with a row for each pair of models; the last two are those of `cycles`."""
        names = [one.name for one in fields(ComparedPair) if one.name != "match"]
        closed, right = zip(*self.cycles, strict=True) if self.pairs else ((), ())
        columns = {name: [getattr(pair, name) for pair in self.pairs] for name in names}
        return columns | {"cycle_closes": list(closed), "right_if_closed": list(right)}

    @property
    def cycles(self) -> list[tuple[float | None, float | None]]:
        """For each pair of models: how often a third model leads to the same partner, and how often that is right.

        None for two models, or where no cycle closes. Evidence that needs no truth: where most cycles close, the pairs
        on which they do are right more often than others; where few do, they say nothing.
        """
        ways: dict[tuple[str, str], IntArray] = {}
        for pair in self.pairs:
            there = np.array(pair.match, dtype=np.intp)
            ways[pair.one, pair.other], ways[pair.other, pair.one] = there, np.argsort(there)
        found: list[tuple[float | None, float | None]] = []
        for pair in self.pairs:
            direct = ways[pair.one, pair.other]
            closed = [
                ways[via, pair.other][ways[pair.one, via]] == direct
                for via in self.names
                if (pair.one, via) in ways and (via, pair.other) in ways
            ]
            right = np.tile(direct == np.arange(len(direct)), (len(closed), 1))[np.array(closed)] if closed else None
            share = float(np.mean(closed)) if closed else None
            found.append((share, float(right.mean()) if right is not None and right.size else None))
        return found

    def to_frame(self) -> DataFrame:
        """A pandas data frame with a row for each pair of models."""
        from pandas import DataFrame

        return DataFrame(self.table)

    def matrix(self, value: str = "accuracy") -> FloatArray:
        """(v, v) one of the measures, symmetric; nan on the diagonal and for pairs that are missing."""
        if value not in VALUES:
            raise unknown_name("value", value, VALUES)
        place = {name: at for at, name in enumerate(self.names)}
        found = np.full((len(place), len(place)), np.nan)
        for pair in self.pairs:
            number = getattr(pair, value)
            i, k = place[pair.one], place[pair.other]
            found[i, k] = found[k, i] = np.nan if number is None else number
        return found

    def plot(self, value: str = "accuracy", ax: Axes | None = None) -> Axes:
        """Draw one of the measures as a heat map, and return the axes: needs matplotlib."""
        values, count = self.matrix(value), len(self.names)
        ax = axes_or_new(ax, (2.2 + 0.6 * count, 1.6 + 0.6 * count))
        image = ax.imshow(values, vmin=0.0, vmax=None if value == "truth_loss" else 1.0, cmap="Blues")
        ax.figure.colorbar(image, ax=ax, label=value.replace("_", " "))
        ax.set_xticks(range(count), self.names, rotation=40, ha="right")
        ax.set_yticks(range(count), self.names)
        for (i, k), number in np.ndenumerate(values):
            if np.isfinite(number):
                dark = number > 0.6 * image.get_clim()[1]
                ax.text(k, i, f"{number:.2f}", ha="center", va="center", color="white" if dark else "black")
        return ax

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return html_table(self.table, most=30)

    def report(self, path: str | Path, command: str | None = None) -> Path:
        """Write one HTML file with the table and the pictures."""
        refuse_missing_folder(path)
        titles = {"accuracy": "Blind accuracy", "cka": "CKA", "mutual_knn": "Mutual k-NN"}
        text = fill(
            "compare.html",
            ["page.js", "theme.js"],
            ["style.css"],
            data={},
            found=self,
            rows=zip(*self.table.values(), strict=True),
            best=max(self.pairs, key=lambda pair: pair.accuracy, default=None),
            heats=[(title, self.names, self.matrix(value).tolist()) for value, title in titles.items()],
            command=command,
            settings={"models": ", ".join(self.names)},
        )
        write_text(path, text)
        return Path(path)


def compare(
    models: Mapping[str, ArrayLike | Path | Views],
    *,
    distortion: str | Distortion = "gw",
    solver: str | Solver = "auto",
    time_limit: float | None = 60.0,
    draws: int = 39,
    rng: int | np.random.Generator | None = None,
    threads: int | None = None,
    store: str | Path | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Compare each two of several models of the same items: how far they agree, and whether a blind match is right.

    Parameters
    ----------
    models
        The embeddings of each model by its name, as ``bm.match`` takes a side: an array, a data frame, a path,
        ``bm.Views``. The same items, in the same order, in each.
    distortion, solver, rng
        As in ``bm.match``. The same seed gives the same result, for any number of threads.
    time_limit
        Seconds for each match, and again for each test.
    draws
        The number of unrelated spaces that p-values come from; 0 for no p-values.
    threads
        How many pairs are compared at the same time; all cores by default.
    store
        A file that keeps each finished pair (a line of JSON), so that a comparison can be continued.
    callback
        Called with the number of pairs that are done, and of all pairs.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(8, 4))
    >>> found = bm.compare({"a": X, "b": X @ rng.normal(size=(4, 9)), "c": X[::-1]}, draws=0, rng=0)
    >>> [(pair.one, pair.other, pair.proved) for pair in found.pairs]
    [('a', 'b', True), ('a', 'c', True), ('b', 'c', True)]
    >>> found.matrix("cka").shape
    (3, 3)
    """
    names, sides = _check_models(models)
    count = usable_cores() if threads is None else at_least(threads, 1, "threads")
    limit = None if time_limit is None else positive(time_limit, "time_limit")
    at_least(draws, 0, "draws")
    seed = int(as_generator(rng).integers(2**63))
    how = _Comparer(distortion, solver, limit, draws, seed, None if store is None else Path(store))
    wanted = list(combinations(zip(names, sides, strict=True), 2))
    interrupted, done = False, 0
    with ThreadPoolExecutor(min(count, len(wanted))) as pool:
        futures = [pool.submit(how.compare_pair, *pair) for pair in wanted]
        try:
            for future in futures:
                future.result()
                done += 1
                if callback is not None:
                    callback(done, len(wanted))
        except KeyboardInterrupt:
            interrupted = True
        finally:  # an error in one pair, or in the callback, ends the others too
            how.stop.set()
            for future in futures:
                future.cancel()
    pairs = [
        future.result() for future in futures if future.done() and not future.cancelled() and not future.exception()
    ]
    return Comparison(names, tuple(pair for pair in pairs if pair is not None), interrupted)


Side = FloatArray | Views
_Model = tuple[str, Side]  # its name and its embeddings


class _Stopped(Exception):  # noqa: N818 (it is no error)
    """The comparison was stopped."""


class _Comparer:
    """The options of a comparison, the file of its finished pairs if there is one, and the signal that ends it."""

    def __init__(
        self,
        distortion: str | Distortion,
        solver: str | Solver,
        limit: float | None,
        draws: int,
        seed: int,
        store: Path | None,
    ) -> None:
        self._distortion, self._solver, self._limit, self._draws, self._seed = distortion, solver, limit, draws, seed
        self._store, self._lock, self.stop = store, threading.Lock(), threading.Event()
        self._known: dict[str, dict[str, Any]] = {}
        self._begin = ""  # a line of its own after one that was cut off
        if store is not None and store.exists():
            with reading(store, "store"):
                text = text_of(store)
                self._begin = "\n" if text and not text.endswith("\n") else ""
                for line in text.splitlines():
                    with suppress(ValueError, KeyError, TypeError):  # the last line of a run that was killed
                        entry = json.loads(line)
                        self._known[entry["key"]] = entry["pair"]

    def compare_pair(self, one: _Model, other: _Model) -> ComparedPair | None:
        """Take the pair from the store, or match and test it; None if it was stopped."""
        names, sides = (one[0], other[0]), (one[1], other[1])
        task = Task(*sides, distortion=self._distortion)
        what = (names, task.digest, repr(self._solver), self._limit, self._draws, self._seed)
        key = hashlib.sha256(repr(what).encode()).hexdigest()
        stated = ComparedPair.read(self._known[key], names, task.sizes[0]) if key in self._known else None
        if stated is not None:
            return stated
        try:
            pair = self._match(names, sides, task)
        except _Stopped:
            return None
        if self._store is not None:
            with self._lock:
                self._keep(json.dumps({"key": key, "pair": asdict(pair)}), self._store)
        return pair

    def _keep(self, line: str, store: Path) -> None:
        """Append a line; a full disk costs the store, not the comparison."""
        try:
            with store.open("a", encoding="utf-8") as file:
                file.write(f"{self._begin}{line}\n")
            self._begin = ""
        except OSError as error:
            self._begin = "\n"
            warnings.warn(f"{store}: a pair was not written: {error.strerror}", RuntimeWarning, stacklevel=2)

    def _watch(self, *_: object) -> None:
        if self.stop.is_set():
            raise _Stopped

    def _match(self, names: tuple[str, str], sides: tuple[Side, Side], task: Task) -> ComparedPair:
        self._watch()
        n, rng, limit, p = task.sizes[0], np.random.default_rng(self._seed), self._limit, None
        result = match_task(task, SolveOptions(self._solver, limit, rng, self._watch, 1))
        if self._draws:
            options: dict[str, Any] = {"time_limit": limit, "rng": rng, "callback": self._watch, "threads": 1}
            p = result.assess(draws=self._draws, resamples=1, regret=False, **options).p_value
        knn, cka = (
            float(measure.loss(*Task(*sides, distortion=measure).kernels).sum())
            for measure in (MutualKNN(k=min(_NEIGHBOURS, n - 1)), CKA())
        )
        return ComparedPair(
            *(*names, n, -cka, -knn),
            truth_loss=task.problem.objective(np.arange(n)) / n**2,
            loss=result.cost / n**2,
            lower_bound=None if result.lower_bound is None else result.lower_bound / n**2,
            accuracy=float(np.mean(result.permutation == np.arange(n))),
            proved=result.status == "optimal",
            p_value=p,
            match=tuple(result.permutation.tolist()),
        )


def _check_models(models: Mapping[str, ArrayLike | Path | Views]) -> tuple[tuple[str, ...], list[Side]]:
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError("models: expected the embeddings of two models or more by their names, {'dino': X, 'clip': Y}")
    sides: list[Side] = []
    called: tuple[object, tuple[str, ...]] | None = None
    for name, given in models.items():
        read = Views.of(given) or as_embeddings(given, f"models[{name!r}]")
        sides.append(read if isinstance(read, Views) else read.values)
        if read.names is not None:
            first, theirs = called = called or (name, read.names)
            for item, other in zip(read.names, theirs, strict=False):
                if item != other:
                    raise ValueError(f"models[{name!r}] has an item {item!r} where models[{first!r}] has {other!r}")
    names, count = list(models), len(sides[0])
    for name, side in zip(names, sides, strict=True):
        if len(side) != count:
            raise ValueError(
                f"models[{name!r}] has {len(side)} items and models[{names[0]!r}] has {count}; expected the same "
                "items, in the same order"
            )
    if not 3 <= count <= QUADRATIC:
        raise ValueError(f"models has {count} items each; expected 3 to {QUADRATIC}")
    return tuple(map(str, names)), sides
