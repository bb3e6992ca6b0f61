"""Store a long computation in shards: a resumed run skips finished shards and gives the same result."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.io.files import Arrays, read_npz, write_atomically

SHARD = 256  # items; a kill loses at most this many


@dataclass(frozen=True, eq=False)
class Shard:
    """The results of some consecutive items."""

    embeddings: Any  # (kept, d) float32
    rows: Any  # the indices of the items in the set
    digests: list[str]  # SHA-256 of the content of each item
    skipped: list[tuple[int, str]]  # row and reason of the items that could not be read

    def moved(self, start: int) -> Shard:
        """The same items, with `start` added to their rows."""
        rows = [row + start for row in self.rows]
        return Shard(self.embeddings, rows, self.digests, [(row + start, why) for row, why in self.skipped])

    def arrays(self) -> dict[str, Any]:
        """Convert to arrays for a file."""
        return {
            "embeddings": np.asarray(self.embeddings, dtype=np.float32),
            "rows": np.asarray(self.rows, dtype=np.int64),
            "digests": np.array(self.digests, dtype="U64"),
            "skipped": np.array(json.dumps(self.skipped)),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> Shard:
        """Convert from the arrays of a file."""
        skipped = [(int(row), str(why)) for row, why in json.loads(str(arrays["skipped"]))]
        return cls(arrays["embeddings"], arrays["rows"], [str(d) for d in arrays["digests"]], skipped)


@dataclass(frozen=True)
class ShardStore:
    """A folder of shards of one plan; shards of another plan are deleted."""

    folder: Path
    plan: dict[str, Any]

    def open(self) -> None:
        """Create the folder, or resume from its shards."""
        text = json.dumps(self.plan, sort_keys=True)
        plan = self.folder / "plan.json"
        if plan.exists() and plan.read_text("utf-8") == text:
            return
        if self.folder.exists():
            if any(
                path.suffix != ".npz" and path.name != "plan.json" and not path.name.startswith(".")
                for path in self.folder.iterdir()
            ):
                raise ValueError(f"{self.folder}: it holds files that are not shards; expected an empty folder")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        write_atomically(plan, lambda file: file.write(text.encode()))

    def read(self, number: int) -> Shard | None:
        """A shard; None if it is missing or damaged and has to be computed."""
        if not self._path(number).exists():
            return None
        try:
            return Shard.of(read_npz(self._path(number)))
        except (ValueError, KeyError):
            return None

    def write(self, number: int, shard: Shard) -> None:
        """Keep a shard."""
        write_atomically(self._path(number), lambda file: np.savez(file, **shard.arrays()))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.npz"

    def remove(self) -> None:
        """Delete the shards."""
        shutil.rmtree(self.folder, ignore_errors=True)
