"""Static plots for papers and notebooks. Each takes a result and returns matplotlib's axes."""

from blindmatch.report.plots import plot_bounds as bounds
from blindmatch.report.plots import plot_kernels as kernels
from blindmatch.report.plots import plot_match as match
from blindmatch.report.plots import plot_shuffling as shuffling
from blindmatch.report.plots import plot_spaces as spaces

__all__ = ["bounds", "kernels", "match", "shuffling", "spaces"]
