"""The quadratic assignment problem, and the distortions and hints that define one."""
