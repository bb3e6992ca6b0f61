"""Read and write files: embeddings, tables, arrays, QAPLIB."""

__all__ = ["annotate_cells"]  # noqa: F822


def __getattr__(name: str) -> object:
    """Import it when it is first used: numpy is too slow for --version and --help."""
    if name != "annotate_cells":
        raise AttributeError(f"module 'blindmatch.io' has no attribute {name!r}")
    from blindmatch.io.cells import annotate_cells

    return annotate_cells


def __dir__() -> list[str]:
    return __all__
