"""Matches that were saved."""

from __future__ import annotations

import json
from pathlib import Path

from blindmatch.cli.console import complain
from blindmatch.cli.progress import busy
from blindmatch.io.files import reading, text_of
from blindmatch.io.qaplib import read_sln
from blindmatch.matching.saved import load
from blindmatch.problem.files import load_solution
from blindmatch.problem.fingerprint import differs
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.solving.result import Result
from blindmatch.validation import IntArray, as_array


def read_match(path: Path) -> Result:
    """The match in a file that ``--save`` wrote, checked again."""
    with busy("checking the saved match"):
        return load(path)


def read_start(path: Path, problem: QAP | None = None) -> IntArray:
    """A match to begin with, from a QAPLIB solution or from a saved match."""
    suffix = path.suffix.lower()
    if suffix not in (".sln", ".json", ".npz"):
        raise ValueError(f"--start {path}: unknown file type {suffix!r}; expected .sln (QAPLIB), .npz or .json")
    try:
        if suffix == ".npz":
            return load(path).permutation
        if suffix == ".json":
            return _permutation(path)
        return read_sln(path)[1] if problem is None else load_solution(path, problem)
    except ValueError as error:
        raise ValueError(f"--start {error}") from None


def _permutation(path: Path) -> IntArray:
    """The permutation in what ``--json`` printed."""
    with reading(path, "JSON"):
        values = json.loads(text_of(path, "utf-8"))
        if not isinstance(values, dict) or "permutation" not in values:
            raise ValueError(f"{path}: not what 'blindmatch match --json' prints")
        permutation = as_array(values["permutation"], "permutation")
        if permutation.ndim != 1 or permutation.dtype.kind != "i":
            raise ValueError("its permutation is no list of integers")
        return permutation


def warn_of_another_problem(problem: QAP, certificate: Certificate, path: Path, *, embeddings: bool) -> None:
    """Say so if a certificate was written for another problem."""
    if not differs(problem, certificate.fingerprint):
        return
    options = " or other options, such as --distortion, --metric and --scale" if embeddings else ""
    complain(f"{path}: it was written for another problem (other data{options}); the bound is that of the one given")
