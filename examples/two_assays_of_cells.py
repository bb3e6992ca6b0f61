"""Match cells that were measured by two assays: no cell is known in both, no feature is shared."""

import sys

import numpy as np

import blindmatch as bm

# Cells of three types that develop from a common root, seen by two assays: nothing linear, and noise.
rng = np.random.default_rng(0)
kind, age = rng.choice(3, 80, p=[0.5, 0.3, 0.2]), rng.random(80) ** 0.7
branches = np.array([[3.0, 0.3], [-1.2, 1.6], [-0.6, -1.1]])
state = age[:, None] * branches[kind] + 0.05 * rng.normal(size=(80, 2))
rna, atac = (
    np.tanh(state @ rng.normal(size=(2, 40)) + rng.normal(size=40)) @ rng.normal(size=(40, d))
    + 0.1 * rng.normal(size=(80, d))
    for d in (50, 30)
)
order = rng.permutation(80)  # the cells of the second assay come in another order
rna_cells, atac_cells, truth = rna, atac[order], np.argsort(order)

task = bm.Task(rna_cells, atac_cells, metric="hops:correlation")  # relations: steps in a graph of neighbours
result = bm.match(task, solver=bm.SOLVERS["faq"](restarts=5), rng=0)
soft = bm.project(result)  # a cell has no single partner: a mean over some, how many is chosen without the truth
trust = result.assess(draws=19, resamples=1, regret=False, time_limit=None, rng=0)
print(f"p = {trust.p_value:.2f}; 0.05 is the least that 19 unrelated sets can give")

known = {"projected": soft.points, "labels": (kind, kind[order])}
report = bm.metrics.evaluate(rna_cells, atac_cells, result.permutation, truth, **known, rng=0)
print(f"FOSCTTM {report.foscttm[0]:.2f} and {report.foscttm[1]:.2f}; 0.5 is chance")
print(f"{report.label_transfer:.0%} get the right type, {report.accuracy:.0%} the right cell")

if len(sys.argv) > 1:  # both assays in one plane, coloured by type
    from matplotlib import pyplot as plt

    axes = np.linalg.svd(atac - atac.mean(axis=0))[2][:2].T
    for points, kinds, marker in ((soft.points, kind, "o"), (atac_cells, kind[order], "^")):
        plt.scatter(*(points @ axes).T, c=kinds, marker=marker)
    plt.savefig(sys.argv[1])
