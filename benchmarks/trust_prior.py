"""The third part of ``trust.py``: what a stated prior does on held-out problems, right or wrong."""

import numpy as np
from trust_calibration import auroc, calibration_error, columns, kinds_of, log_odds, priors_of, rows_of

from blindmatch.trust.confidence import probability

STATED = 0.3  # of a kind that has no fitted part: a round number that a user would state
WRONG = (0.1, 0.3, 0.5, 0.7, 0.9)
TITLES = ("held-out problems", "prior", "pairs", "right", "mean confidence", "ECE", "AUROC", "AUROC within a match")
HEAD = f"| {' | '.join((*TITLES, '0.6 or more', 'of these right'))} |\n| --- |{' ---: |' * 9}"


def prior(options):
    """Confidence with the prior of each kind, measured on the fitted part, and with wrong priors."""
    seen, rows = rows_of("fit"), rows_of("test")
    kinds, by_kind = kinds_of(rows), priors_of(seen)
    print(HEAD)
    for kind in dict.fromkeys(kinds.tolist()):
        these = np.flatnonzero(kinds == kind)
        chosen = [rows[i] for i in these]
        line(kind, "none", chosen, None)
        line(kind, f"{by_kind.get(kind, STATED):.2g}", chosen, by_kind.get(kind, STATED))
    print(f"\nwrong priors: odds halved and doubled, then {', '.join(map(str, WRONG))}\n\n{HEAD}")
    for kind in dict.fromkeys(kinds.tolist()):
        chosen = [rows[i] for i in np.flatnonzero(kinds == kind)]
        odds = log_odds(by_kind.get(kind, STATED))
        for stated in (*(1 / (1 + np.exp(-odds - np.log(factor))) for factor in (0.5, 2)), *WRONG):
            line(kind, f"{stated:.2g}", chosen, stated)


def line(kind, told, rows, stated):
    """Print a row of the table, for a prior, or for one of each pair."""
    X, right = columns(rows)
    if isinstance(stated, np.ndarray):
        confidence = np.zeros(len(rows))
        for one in np.unique(stated):
            confidence[stated == one] = probability(X[stated == one], one)
    else:
        confidence = probability(X, stated)
    confidence = np.minimum(confidence, [1 / int(row["tied"]) for row in rows])
    problem, high = np.array([int(row["problem"]) for row in rows]), confidence >= 0.6
    figures = (right.mean(), confidence.mean(), calibration_error(confidence, right), auroc(confidence, right))
    shares = [f"{figure:.3f}" for figure in (*figures, within(confidence, right, problem))]
    most = (str(high.sum()), f"{right[high].mean():.2f}" if high.any() else "")
    print(f"| {' | '.join((kind, told, str(len(rows)), *shares, *most))} |")


def within(confidence, right, problem):
    """The mean AUROC over the matches that have right and wrong pairs."""
    found = [auroc(confidence[problem == one], right[problem == one]) for one in np.unique(problem)]
    found = [value for value in found if np.isfinite(value)]
    return np.mean(found) if found else np.nan
