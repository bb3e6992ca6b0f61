"""Solvers for the tests of `bm.solve`: a quick one, and some that return what a test chooses."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from blindmatch.solvers.base import Capabilities, Outcome, Solver
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant

QUICK = FactorizedHahnGrant(primal_heuristic=False)


@dataclass(frozen=True)
class Liar(Solver):
    """A solver that returns what the test chooses."""

    outcome: Outcome
    name: ClassVar[str] = "liar"
    capabilities: ClassVar[Capabilities] = Capabilities(bound=True)

    def __call__(self, problem, *, budget, rng):
        return self.outcome


def refusing(**capabilities):
    """A solver with these capabilities alone."""

    class Refusing(Liar):
        pass

    Refusing.capabilities = Capabilities(**capabilities)
    return Refusing(Outcome(np.arange(4), "heuristic"))
