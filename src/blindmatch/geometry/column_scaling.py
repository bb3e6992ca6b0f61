"""Columns of a table with units: bring them to a common scale, and notice when one of them outweighs the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blindmatch.errors import unknown_name
from blindmatch.validation import BoolArray, FloatArray

SCALES = ("none", "columns", "robust", "log", "auto")
_WIDE = 20.0  # a column of positive numbers is wide if its largest number is this many times its smallest
_FAR = 5.0  # an outlier is this many robust spreads from the median
_HEAVY = 5.0  # a column outweighs the others if its spread is this many times their median spread
_FEWEST = 8  # items: of fewer, the spreads of columns differ by chance
_NORMAL = 1.349  # interquartile range of a normal distribution with spread 1


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """The scaling of the columns of one side. An item becomes ``(log(x) or x, minus centre) / spread``.

    Attributes
    ----------
    scale
        What was asked for: one of "none", "columns", "robust", "log", "auto".
    logs, robust
        (d,) booleans: the columns whose logarithm was taken, and those scaled by median and quartiles.
    centre, spread
        (d,) numbers. If nothing was scaled, zeros and ones.
    """

    scale: str
    logs: BoolArray
    robust: BoolArray
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, values: FloatArray, scale: str) -> ColumnScaling:
        """Learn the scaling of (n, d) values.

        "none": nothing. "columns": mean 0 and standard deviation 1. "robust": median 0 and an interquartile range of
        1.349, so that outliers do not decide the scale. "log": the logarithm of wide columns, then as "columns". A
        column is wide if all its numbers are positive and the largest is at least 20 times the smallest. "auto": as
        "log", but as "robust" for columns with a number more than five spreads from the median; `pair` decides whether
        it is needed.

        >>> table = np.array([[1.0, 2e6], [2.0, 9e7], [3.0, 1e9]])
        >>> ColumnScaling.of(table, "auto").transform(table).round(1).tolist()
        [[-1.2, -1.3], [0.0, 0.2], [1.2, 1.1]]
        """
        if scale not in SCALES:
            raise unknown_name("scale", scale, SCALES)
        none = np.zeros(values.shape[1], dtype=bool)
        if scale == "none":
            return cls(scale, none, none, np.zeros(values.shape[1]), np.ones(values.shape[1]))
        least, most = values.min(axis=0), values.max(axis=0)
        wide = (least > 0) & (most / np.where(least > 0, least, 1.0) >= _WIDE)
        logs = wide if scale in ("log", "auto") else none
        shown = _logged(values, logs)
        spread = shown.std(axis=0)
        constant = spread <= 1e-12 * np.abs(shown).max(axis=0)  # the spread of equal numbers may be a rounding error
        centre, spread = np.where(constant, shown[0], shown.mean(axis=0)), np.where(constant, 1.0, spread)
        low, middle, high = np.quantile(shown, (0.25, 0.5, 0.75), axis=0)
        width = np.where(high > low, (high - low) / _NORMAL, spread)
        far = np.abs(shown - middle).max(axis=0) > _FAR * width
        robust = far if scale == "auto" else ~none if scale == "robust" else none
        return cls(scale, logs, robust, np.where(robust, middle, centre), np.where(robust, width, spread))

    @classmethod
    def pair(cls, source: FloatArray, target: FloatArray, scale: str) -> tuple[ColumnScaling, ColumnScaling]:
        """The scalings of two sides. "auto" scales both if one column of either outweighs the others, or else none.

        Both sides or none: distances of scaled and of raw columns have little in common.
        """
        if scale == "auto" and heaviest(source) is None and heaviest(target) is None:
            idle = (replace(cls.of(side, "none"), scale=scale) for side in (source, target))
            return next(idle), next(idle)
        return cls.of(source, scale), cls.of(target, scale)

    @property
    def changes(self) -> bool:
        """True if anything is scaled."""
        return bool(self.centre.any() or self.logs.any() or (self.spread != 1).any())

    def transform(self, values: FloatArray) -> FloatArray:
        """The values on the common scale; a ValueError if a column has no logarithm here."""
        if not self.changes:
            return values
        bad = np.argwhere(self.logs & (values <= 0))
        if len(bad):
            i, j = bad[0]
            raise ValueError(f"row {i} holds {values[i, j]:g} in column {j}, whose logarithm is taken")
        return np.asarray((_logged(values, self.logs) - self.centre) / self.spread)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Values on the common scale in the units of their columns.

        >>> table = np.array([[1.0, 2e6], [2.0, 9e7], [3.0, 1e9]])
        >>> scaling = ColumnScaling.of(table, "auto")
        >>> bool(np.allclose(scaling.inverse(scaling.transform(table)), table))
        True
        """
        if not self.changes:
            return values
        with np.errstate(over="ignore"):  # where a logarithm is far beyond all that was seen
            shown = values * self.spread + self.centre
            return np.asarray(np.where(self.logs, np.exp(np.where(self.logs, shown, 0.0)), shown))

    def described(self, titles: Sequence[str] | None = None) -> str:
        """Describe what was done.

        >>> ColumnScaling.of(np.array([[1.0, 2e6], [2.0, 9e7], [3.0, 1e9]]), "auto").described(["age", "people"])
        'z-scores; logarithm of people'
        """
        if not self.changes:
            return "as they are" + (", because no column outweighs the others" if self.scale == "auto" else "")
        parts = ["median and quartiles" if self.robust.all() else "z-scores"]
        if self.robust.any() and not self.robust.all():
            parts.append(f"median and quartiles of {_listed(self.robust, titles)}")
        if self.logs.any():
            parts.append(f"logarithm of {_listed(self.logs, titles)}")
        return "; ".join(parts)


def heaviest(values: FloatArray) -> tuple[int, float] | None:
    """The column that outweighs the others, and its share of all squared distances; None if there is none.

    There are at least 8 items. The column has more than half of the sum of the variances, and its spread is at least
    five times the median spread of the other columns that are not constant.

    >>> heaviest(np.array([[1.0, 2e6], [2.0, 9e7], [3.0, 1e9]] * 3))
    (1, 1.0)
    """
    if len(values) < _FEWEST:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        spread = values.std(axis=0)
        largest = spread.max()
    if not np.isfinite(largest) or np.count_nonzero(spread) < 2:
        return None
    at = int(spread.argmax())
    others = np.delete(spread, at)
    share = float(1 / (1 + ((others / largest) ** 2).sum()))
    usual = np.quantile(others[others > 0], 0.5, method="lower")
    return (at, share) if share > 0.5 and largest >= _HEAVY * usual else None


class UnitsWarning(UserWarning):
    """One column outweighs the others, and no scale was chosen."""


def outweighing(sides: Iterable[tuple[str, FloatArray, Sequence[str] | None]]) -> str:
    """Name the columns that outweigh the others; empty if none does. A side has a name, values and column titles.

    >>> outweighing([("source", np.array([[1.0, 2e6], [2.0, 9e7], [3.0, 1e9]] * 3), ["age", "people"])])
    "column 'people' of the source carries 99.9 % of the squared distances, so the other columns hardly count"
    """
    found = []
    for name, values, titles in sides:
        heavy = heaviest(values)
        if heavy is not None:
            column = str(heavy[0]) if titles is None else repr(titles[heavy[0]])
            share = f"{min(100 * heavy[1], 99.9):.3g} % of the squared distances"
            found.append(f"column {column} of the {name} carries {share}, so the other columns hardly count")
    return "; ".join(found)


def warn_of_units(sides: Iterable[tuple[str, FloatArray, Sequence[str] | None]], stacklevel: int = 2) -> None:
    """Warn if one column of a side outweighs the others: for callers that scale nothing."""
    heavy = outweighing(sides)
    if heavy:
        message = f"{heavy}. scale='auto' brings columns to a common scale"
        warnings.warn(message, UnitsWarning, stacklevel=stacklevel + 1)


def _logged(values: FloatArray, logs: BoolArray) -> FloatArray:
    return np.asarray(np.where(logs, np.log(np.where(logs, values, 1.0)), values))


def _listed(columns: BoolArray, titles: Sequence[str] | None) -> str:
    """The names of columns, or their numbers; not more than six."""
    named = [str(j) if titles is None else titles[j] for j in np.flatnonzero(columns).tolist()]
    kept = ", ".join(named[:6]) + (f" and {len(named) - 6} more" if len(named) > 6 else "")
    return kept if titles is not None else f"column{'' if len(named) == 1 else 's'} {kept}"
