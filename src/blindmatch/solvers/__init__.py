"""All solvers. `SOLVERS` is the only registry; it maps each name to the class of the solver."""

from __future__ import annotations

from blindmatch.solvers.auto import Auto
from blindmatch.solvers.baselines import BruteForce, LocalCKA, Random
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.dual_ascent import DualAscent
from blindmatch.solvers.entropic_gw import EntropicGW
from blindmatch.solvers.faq import FAQ
from blindmatch.solvers.gurobi import Gurobi
from blindmatch.solvers.hahn_grant import FactorizedHahnGrant, HahnGrant
from blindmatch.solvers.mpopt import MPOpt
from blindmatch.solvers.scip import SCIP
from blindmatch.solvers.semidefinite import Semidefinite
from blindmatch.solvers.tabu import Tabu
from blindmatch.solvers.two_opt import TwoOpt

SOLVERS = {
    solver.name: solver
    for solver in (
        Auto,
        BranchAndBound,
        DualAscent,
        Semidefinite,
        FactorizedHahnGrant,
        HahnGrant,
        Tabu,
        FAQ,
        TwoOpt,
        EntropicGW,
        LocalCKA,
        MPOpt,
        Gurobi,
        SCIP,
        BruteForce,
        Random,
    )
}
