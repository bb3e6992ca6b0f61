"""Ctrl-C at the k-th event of a call, for every k: nothing is left to luck."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from blindmatch.solvers.base import Solver


@dataclass
class Press:
    """A trace function that raises KeyboardInterrupt at the `count`-th event.

    The events are calls of Python functions, or lines of them.
    """

    count: int
    event: Literal["call", "line"] = "call"
    seen: int = 0
    begun: bool = False  # a solver had been called before
    where: str = ""  # empty: there were fewer events
    outcome: Any = field(default=None, repr=False)  # what the call returned, or raised

    def __call__(self, frame: FrameType, event: str, _: Any) -> Press | None:
        if self.where:
            return None
        if event == self.event:
            self.seen += 1
            if self.seen == self.count:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}, {frame.f_code.co_qualname}"
                raise KeyboardInterrupt
        if event == "call" and frame.f_code.co_name == "__call__":
            self.begun = self.begun or isinstance(frame.f_locals.get("self"), Solver)
        return self if self.event == "line" else None


def pressed(call: Callable[[], Any], event: Literal["call", "line"] = "call", step: int = 1) -> Iterator[Press]:
    """Interrupt each event of a call in turn, or every `step`-th one; yield what became of the call."""
    count, before = 1, sys.gettrace()
    while True:
        press = Press(count, event)
        sys.settrace(press)
        try:
            press.outcome = call()
        except BaseException as error:
            press.outcome = error
        finally:
            sys.settrace(before)
        if not press.where:
            return
        yield press
        count += step
