"""All solvers. `SOLVERS` is the only registry: a name, and the class whose objects are the configured solvers."""

from __future__ import annotations

from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant, HahnGrant
from blindmatch.solvers.random_match import Random
from blindmatch.solvers.two_opt import TwoOpt

SOLVERS = {solver.name: solver for solver in (FactorizedHahnGrant, HahnGrant, FAQ, TwoOpt, Random)}
