"""Match two sets of embeddings with no pairs at all, and prove how good the match is."""

import ast as _ast
import importlib as _importlib
import pathlib as _pathlib
import typing as _typing

# scipy and scikit-learn take a second to import, too long for --version or --help, so a name is imported when it is
# first used. The stub lists every public name with its module, for type checkers and for the function below.
_STUB = _ast.parse(_pathlib.Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_PLACES = {
    alias.name: node.module or "" for node in _STUB.body if isinstance(node, _ast.ImportFrom) for alias in node.names
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> _typing.Any:
    if name == "__version__":
        from importlib.metadata import version

        value: _typing.Any = version("blindmatch")
    elif _PLACES.get(name, "blindmatch") != "blindmatch":
        value = getattr(_importlib.import_module(_PLACES[name]), name)
    else:  # a module, such as bm.metrics, as if it had been imported before
        try:
            value = _importlib.import_module(f"blindmatch.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module 'blindmatch' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
