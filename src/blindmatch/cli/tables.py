"""The columns of two tables that were used, and their scales: for the terminal, JSON and the report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from blindmatch.cli.console import complain, plain
from blindmatch.geometry.column_scaling import ColumnScaling, UnitsWarning, outweighing
from blindmatch.io.embeddings import Embeddings

_SHOWN = 12  # columns that are listed by name
SIDES = ("source", "target")


@dataclass(frozen=True, eq=False)
class Tables:
    """Two files of embeddings, and the scalings of their columns (None if they were not scaled)."""

    sides: tuple[Embeddings, Embeddings]
    scalings: tuple[ColumnScaling, ColumnScaling] | None = None
    names: tuple[str, str] = SIDES
    relations: bool = False  # whether the tables hold relations between items, whose columns have no scale

    @classmethod
    def scaled(cls, one: Embeddings, other: Embeddings, scale: str) -> Tables:
        """These two, scaled as ``scale=`` does it."""
        found = ColumnScaling.pair(one.values, other.values, scale)
        return cls((one, other), None if scale == "none" else found)

    @property
    def settings(self) -> dict[str, str]:
        """Columns, scales and missing cells, for the report."""
        notes: dict[str, str] = {}
        for side, read, scaling in self._each():
            if _has_titles(read):
                notes[f"columns of the {side}"] = _columns(read)
            if read.ignored:
                notes[f"ignored of the {side}"] = ", ".join(read.ignored)
            if scaling is not None:
                notes[f"scale of the {side}"] = scaling.described(read.columns)
            if read.gaps:
                notes[f"missing in the {side}"] = read.gaps
        return notes

    @property
    def texts(self) -> list[Text]:
        """The same in a line for each side, for the terminal."""
        lines = []
        for side, read, scaling in self._each():
            parts = [f"columns: {_columns(read)}"] if _has_titles(read) else []
            parts += [f"ignored: {', '.join(read.ignored)}"] if read.ignored else []
            parts += [f"scaled: {scaling.described(read.columns)}"] if scaling is not None else []
            lines += [Text(plain(f"{side}, {'; '.join(parts)}"))] if parts else []
            lines += [Text(f"{side}, missing: {read.gaps}")] if read.gaps else []
        return lines

    def warn(self) -> None:
        """Warn on stderr if a column outweighs the others and no scale was chosen."""
        if self.scalings is not None or self.relations:
            return
        heavy = outweighing((side, read.values, read.columns) for side, read, _ in self._each())
        if heavy:
            complain(f"warning: {heavy}. Try --scale auto")

    @contextmanager
    def warned(self) -> Iterator[None]:
        """Warn as `warn` does, and not once more as Python does."""
        self.warn()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            yield

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            side: {
                "used": list(read.columns) if read.columns is not None else read.values.shape[1],
                "ignored": list(read.ignored),
                "scaled": None if scaling is None else scaling.described(read.columns),
            }
            for side, read, scaling in self._each()
        }

    def _each(self) -> Sequence[tuple[str, Embeddings, ColumnScaling | None]]:
        return list(zip(self.names, self.sides, self.scalings or (None, None), strict=True))


def _has_titles(read: Embeddings) -> bool:
    """True if the columns have meaningful titles: 0, 1, 2, ... are not."""
    return read.columns is not None and not all(title.isdecimal() for title in read.columns)


def _columns(read: Embeddings) -> str:
    titles = read.columns or ()
    more = f" and {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
    return ", ".join(titles[:_SHOWN]) + more
