"""How good the solvers are: `python -m benchmarks.quality --help`, from the root of the repository."""
