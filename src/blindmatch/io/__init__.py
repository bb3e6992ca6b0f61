"""Read and write files: embeddings, tables, arrays, QAPLIB."""

from blindmatch.io.cells import annotate_cells

__all__ = ["annotate_cells"]
