"""Read and write files: embeddings, tables, arrays, QAPLIB."""
