"""Parametrised tests of which a few cases always run, and the others only with BLINDMATCH_SLOW=1, as in CI."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(names: str | tuple[str, ...], cases: Iterable[Any], quick: Any = 1) -> pytest.MarkDecorator:
    """``parametrize`` with the first cases quick (a number), or certain ones (a collection); the others are slow."""
    parameters = []
    for at, case in enumerate(cases):
        always = at < quick if isinstance(quick, int) else case in quick
        values = case if isinstance(names, tuple) else (case,)
        parameters.append(pytest.param(*values, marks=() if always else pytest.mark.slow))
    return pytest.mark.parametrize(names, parameters)
