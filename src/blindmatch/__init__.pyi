"""The public names. `__init__.py` reads this file: a name is imported from its module when it is first used."""

from blindmatch import encoders as encoders
from blindmatch import io as io
from blindmatch import metrics as metrics
from blindmatch import plot as plot
from blindmatch.alignment.aligner import BlindAligner as BlindAligner
from blindmatch.errors import SolverUnavailable as SolverUnavailable
from blindmatch.geometry.prototypes import class_means as class_means
from blindmatch.geometry.prototypes import prompt_means as prompt_means
from blindmatch.geometry.relations import fill_missing as fill_missing
from blindmatch.geometry.views import Views as Views
from blindmatch.matching.choice import choose_relation as choose_relation
from blindmatch.matching.classifier import BlindClassifier as BlindClassifier
from blindmatch.matching.match import match as match
from blindmatch.matching.match_columns import match_columns as match_columns
from blindmatch.matching.matcher import BlindMatcher as BlindMatcher
from blindmatch.matching.projection import project as project
from blindmatch.matching.saved import load as load
from blindmatch.matching.subsets import Subsets as Subsets
from blindmatch.matching.subsets import best_subsets as best_subsets
from blindmatch.problem.distortions import CKA as CKA
from blindmatch.problem.distortions import KL as KL
from blindmatch.problem.distortions import Gaussian as Gaussian
from blindmatch.problem.distortions import GromovWasserstein as GromovWasserstein
from blindmatch.problem.distortions import InnerProduct as InnerProduct
from blindmatch.problem.distortions import MutualKNN as MutualKNN
from blindmatch.problem.qap import QAP as QAP
from blindmatch.problem.task import Task as Task
from blindmatch.proof.certificate import Certificate as Certificate
from blindmatch.proof.checker import verify as verify
from blindmatch.report.comparison import Comparison as Comparison
from blindmatch.report.comparison import compare as compare
from blindmatch.solvers import SOLVERS as SOLVERS
from blindmatch.solvers.branch_and_bound import BranchAndBound as BranchAndBound
from blindmatch.solvers.progress import Progress as Progress
from blindmatch.solving.pool import Pool as Pool
from blindmatch.solving.result import Result as Result
from blindmatch.solving.run import solve as solve
from blindmatch.trust.report import Assessment as Assessment

__version__: str
