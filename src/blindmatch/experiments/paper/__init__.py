"""The paper's experiments, one module each, and the numbers that the paper reports."""
