"""What Ctrl-C and SIGTERM do outside a solver's run: finished work is kept if it is of use.

Inside a run, `solvers.base.Budget` decides: the result is the best match so far, with status "interrupted".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from blindmatch.solving.result import Result


@dataclass
class Interruption:
    """Whether Ctrl-C ended a block."""

    happened: bool = False

    def __bool__(self) -> bool:
        return self.happened


@contextmanager
def keep_what_is_done(there_is: Callable[[], bool] = lambda: True) -> Iterator[Interruption]:
    """Let Ctrl-C end the block, but not the program, if there is something to keep.

    >>> done = []
    >>> with keep_what_is_done(lambda: bool(done)) as interrupted:
    ...     done.append(1)
    ...     raise KeyboardInterrupt
    >>> done, bool(interrupted)
    ([1], True)
    """
    interruption = Interruption()
    try:
        yield interruption
    except KeyboardInterrupt:
        if not there_is():
            raise
        interruption.happened = True


def complete(result: Result) -> Result:
    """Return one result of many; raise KeyboardInterrupt if Ctrl-C cut it short, since some of them are of no use."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
