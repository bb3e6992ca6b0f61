"""Embeddings to matrices of relations (kernels), and class means."""
