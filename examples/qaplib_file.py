"""Solve a quadratic assignment problem in QAPLIB format, save the proof and check it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import blindmatch as bm

# The flow between six machines, and the distances between six places on a grid of two by three.
PROBLEM = """6

0 5 2 4 1 0
5 0 3 0 2 2
2 3 0 0 0 0
4 0 0 0 5 2
1 2 0 5 0 10
0 2 0 2 10 0

0 1 2 1 2 3
1 0 1 2 1 2
2 1 0 3 2 1
1 2 3 0 1 2
2 1 2 1 0 1
3 2 1 2 1 0
"""

with TemporaryDirectory() as folder:
    path, proof = Path(folder) / "grid6.dat", Path(folder) / "proof.npz"
    path.write_text(PROBLEM)
    problem = bm.QAP.from_qaplib(path)
    result = bm.solve(problem, rng=0)
    result.certificate.save(proof)
    print(f"machines go to places {result.permutation.tolist()} at a cost of {result.cost:g}: {result.status}")
    bound = bm.verify(bm.QAP.from_qaplib(path), bm.Certificate.load(proof))
    print(f"the checker, which uses no solver, proves with {proof.name}: no arrangement costs less than {bound:g}")
