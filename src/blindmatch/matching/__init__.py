"""Embeddings in, matches out: functions and scikit-learn estimators."""
