"""Run sweeps: what is missing, in chunks, on any executor, with every result kept."""
