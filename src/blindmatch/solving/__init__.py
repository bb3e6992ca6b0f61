"""Run a solver so that every promise of the result is checked."""
