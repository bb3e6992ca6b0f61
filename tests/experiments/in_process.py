"""An engine for tests: any executor does, so a thread in this process does too."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class InProcess:
    workers: int = 1

    @contextmanager
    def open(self, folder):
        with ThreadPoolExecutor(self.workers) as pool:
            yield pool


# Runs that no time limit cuts short, so that their results repeat.
SMALL = {"sizes": (14,), "seeds": 40, "time_limits": (60.0,), "variants": ("+ Jonker-Volgenant",)}
