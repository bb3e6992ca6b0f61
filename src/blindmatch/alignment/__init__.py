"""The steps of ``bm.BlindAligner``: frames, centres, refinement, neighbours, and the map that comes out."""
