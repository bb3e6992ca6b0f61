"""The trusted base: certificates of lower bounds and their checker, in plain numpy. It imports no solver."""
