"""Turn user input into clean arrays, or say exactly what is wrong with it."""

from __future__ import annotations

import math
import operator
import sys
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindmatch.errors import shown
from blindmatch.machine import usable_cores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


def as_floats(values: ArrayLike, name: str, ndim: int = 2, *, finite: bool = True) -> FloatArray:
    """Return a float64 copy of `values`: finite numbers (unless `finite` is False), `ndim` axes, not empty.

    >>> as_floats([[1, 2], [3, float("nan")]], "X")
    Traceback (most recent call last):
    ...
    ValueError: X holds nan at [1, 1]; every value must be finite
    """
    raw = as_array(values, name)
    if raw.dtype.kind not in "biuf" and not np.can_cast(raw.dtype, np.float64):  # JAX has bfloat16
        raise ValueError(f"{name} {_contents(raw)}; expected real numbers")
    if raw.ndim != ndim:
        prompts = " (are these prompts? bm.prompt_means averages them)" if (raw.ndim, ndim) == (3, 2) else ""
        raise ValueError(f"{name} has shape {raw.shape}; expected {ndim} axes{prompts}")
    if raw.size == 0:
        raise ValueError(f"{name} is empty: its shape is {raw.shape}")
    with np.errstate(over="ignore"):  # numbers beyond float64 become infinite and are reported below
        array = np.array(raw, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if finite and len(bad):
        where = ", ".join(str(index) for index in bad[0])
        raise ValueError(f"{name} holds {array[tuple(bad[0])]} at [{where}]; every value must be finite")
    return array


def _contents(raw: NDArray[Any]) -> str:
    """The contents of an array that does not hold numbers."""
    first = next((one for one in raw.flat if not isinstance(one, int | float)), None)
    if isinstance(first, str):
        return f"holds text ({shown(str(first), 40)})"
    return f"holds {shown(first, 40)}" if raw.dtype == object else f"has dtype {raw.dtype}"


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as an array of any dtype, or say that it is ragged."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array; fill or drop the masked values first")
    if type(values).__module__.startswith("scipy.sparse") and hasattr(values, "toarray"):
        values = values.toarray()
    if type(values).__module__.startswith("anndata") and hasattr(values, "obsm"):
        raise ValueError(f"{name} is an AnnData object; pass one of its matrices, such as data.obsm['X_pca']")
    if type(values).__module__.startswith("networkx"):
        raise ValueError(f"{name} is a networkx graph; graphs are kernels=(G, H), and other arguments matrices")
    try:
        return np.asarray(plain(values))
    except ValueError as error:
        raise ValueError(f"{name} is ragged: its rows differ in length ({error})") from None


def plain(values: Any) -> Any:
    """Convert tensors and pandas' own numeric types to arrays that numpy can read; return the rest unchanged."""
    package = type(values).__module__.split(".")[0]
    if package == "torch":
        tensor = values.detach().cpu().resolve_conj()  # drops device, gradient and bfloat16
        return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
    if package == "pandas" and hasattr(values, "to_numpy"):
        return _from_pandas(values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return values


def _from_pandas(values: Any) -> Any:
    """Convert pandas' nullable and Arrow numbers, which numpy reads as objects; a missing number becomes nan."""
    dtypes = list(values.dtypes) if values.ndim == 2 else [values.dtype]
    kinds = [getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes]
    if not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds) or kinds == dtypes:
        return values
    if np.asarray(values.isna()).any():
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return values.to_numpy(dtype=np.result_type(*kinds))


def as_square(values: ArrayLike, name: str, size: int | None = None) -> FloatArray:
    """Return a float64 copy of a square matrix, with `size` rows if it is given."""
    array = as_floats(values, name)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}; expected a square matrix")
    if size is not None and len(array) != size:
        raise ValueError(f"{name} has shape {array.shape}; expected ({size}, {size})")
    return array


def as_permutation(values: ArrayLike, size: int, name: str = "permutation") -> IntArray:
    """Return `values` as an index array that holds each of 0..size-1 once."""
    array = as_array(values, name)
    if array.dtype.kind not in "iu" or array.shape != (size,):
        raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}; expected {size} integers")
    if not np.array_equal(np.sort(array), np.arange(size)):
        raise ValueError(f"{name}={array.tolist()} is not a permutation of 0..{size - 1}")
    return array.astype(np.intp)


def as_partners(values: ArrayLike, sizes: tuple[int, int], name: str) -> IntArray:
    """Return `values` as the target of each source, -1 for none; `sizes` are the numbers of sources and targets."""
    array, (n, m) = as_array(values, name), sizes
    integers = array.dtype.kind in "iu" and array.shape == (n,)
    used = array[array >= 0] if integers else array
    if not integers or array.min() < -1 or array.max() >= m or len(np.unique(used)) < len(used):
        raise ValueError(f"{name}={shown(values)}; expected {n} integers: different targets below {m}, or -1")
    return array.astype(np.intp)


def as_pairs(pairs: Any, sizes: tuple[int, int], name: str) -> list[tuple[int, int]]:
    """Return pairs (source, target) of indices in range; a data frame has one row per pair."""
    checked = []
    try:
        # list() of a data frame would give its columns.
        listed = list(as_array(pairs, name) if hasattr(pairs, "__array__") else pairs)
    except TypeError:
        raise ValueError(f"{name}={shown(pairs)}; expected pairs (source index, target index)") from None
    for pair in listed:
        try:
            i, j = (operator.index(index) for index in pair)
        except (TypeError, ValueError):
            raise ValueError(f"{name} holds {shown(pair)}; expected pairs (source index, target index)") from None
        if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise ValueError(f"{name} holds ({i}, {j}); source must be below {sizes[0]} and target below {sizes[1]}")
        checked.append((i, j))
    return checked


def positive(value: float, name: str) -> float:
    """Return `value` if it is a number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0:
        raise ValueError(f"{name}={shown(value)}; expected a number above 0")
    return _as_float(value, name)


def not_negative(value: float, name: str) -> float:
    """Return `value` if it is a finite number of at least zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < float("inf"):
        raise ValueError(f"{name}={shown(value)}; expected a number of at least 0")
    return _as_float(value, name)


def _as_float(value: float, name: str) -> float:
    try:
        return float(value)
    except OverflowError:  # of a large integer
        raise ValueError(f"{name}={shown(value)}; expected a number below {sys.float_info.max:.2g}") from None


def boolean(value: bool, name: str) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={shown(value)}; expected True or False")
    return bool(value)


def at_least(value: object, least: int, name: str, most: float = math.inf) -> int:
    """Return `value` if it is an integer not below `least`, and not above `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={shown(value)}; expected an integer of at least {least}")
    if value > most:
        raise ValueError(f"{name}={shown(value)}; expected an integer of at most {most}")
    return int(value)


def as_threads(n_jobs: int | None) -> int | None:
    """The number of threads that scikit-learn's `n_jobs` stands for: None and -1 are all, -2 is all but one."""
    if n_jobs is None or n_jobs == -1:
        return None
    if isinstance(n_jobs, int | np.integer) and n_jobs < 0:
        return max(usable_cores() + 1 + int(n_jobs), 1)
    return at_least(n_jobs, 1, "n_jobs")


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator from a seed; a generator is returned unchanged."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rng={shown(rng)}; expected a seed (an integer, at least 0) or a numpy Generator") from error


def refuse_other(value: Any, kind: type, name: str, remedy: str) -> None:
    """Refuse a value that is not of this class."""
    if not isinstance(value, kind):
        raise ValueError(f"{name}={shown(value)} is not a {kind.__name__}; {remedy}")


def as_sequence(values: Any, name: str, of: str) -> list[Any]:
    """Return the entries of a list, tuple, array or any other iterable but a text; `of` says what they should be."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name}={shown(values)}; expected a list of {of}")
    return list(values)


def as_executor(executor: Any) -> Executor:
    """An executor with the interface of ``concurrent.futures``; a Dask client is asked for its own."""
    if isinstance(executor, type):
        name = executor.__name__
        raise ValueError(f"executor={name} is a class; expected an instance, executor={name}()")
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor(pure=False)
    if not (hasattr(executor, "submit") and hasattr(executor, "shutdown")):
        raise ValueError(f"executor={shown(executor)}: expected a concurrent.futures.Executor or a Dask client")
    # concurrent.futures has no public name for this; executors of other libraries say it when work is submitted.
    if getattr(executor, "_shutdown", False) is True or getattr(executor, "_shutdown_thread", False) is True:
        raise ValueError(f"executor={shown(executor)} was shut down; expected one that takes work")
    made: Executor = executor
    return made
