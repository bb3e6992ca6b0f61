"""The columns of two tables that were used, and their scales: for the terminal, JSON and the report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from blindmatch.cli.console import complain, plain
from blindmatch.geometry.column_scaling import ColumnScaling, UnitsWarning, outweighing
from blindmatch.io.embeddings import Embeddings

_SHOWN = 12  # columns that are listed by name
_WORDS = {"columns of": "columns", "ignored of": "ignored", "scale of": "scaled"}
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

    def _facts(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Describe the columns of each side."""
        for side, read, scaling in zip(self.names, self.sides, self.scalings or (None, None), strict=True):
            titles = read.columns or ()
            titles = () if all(title.isdecimal() for title in titles) else titles  # 0, 1, 2, ... tell nothing
            more = f" and {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
            facts = {
                "columns of": ", ".join(titles[:_SHOWN]) + more,
                "ignored of": ", ".join(read.ignored),
                "scale of": "" if scaling is None else scaling.described(read.columns),
                "missing in": read.gaps,
            }
            yield side, {what: text for what, text in facts.items() if text}

    @property
    def settings(self) -> dict[str, str]:
        """Columns, scales and missing cells, for the report."""
        return {f"{what} the {side}": text for side, facts in self._facts() for what, text in facts.items()}

    @property
    def texts(self) -> list[Text]:
        """The same in a line for each side, for the terminal."""
        lines = []
        for side, facts in self._facts():
            gaps = facts.pop("missing in", "")
            parts = [f"{_WORDS[what]}: {text}" for what, text in facts.items()]
            lines += [Text(plain(f"{side}, {'; '.join(parts)}"))] if parts else []
            lines += [Text(f"{side}, missing: {gaps}")] if gaps else []
        return lines

    def warn(self) -> None:
        """Warn on stderr if a column outweighs the others and no scale was chosen."""
        if self.scalings is not None or self.relations:
            return
        heavy = outweighing(
            (side, read.values, read.columns) for side, read in zip(self.names, self.sides, strict=True)
        )
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
            for side, read, scaling in zip(self.names, self.sides, self.scalings or (None, None), strict=True)
        }
