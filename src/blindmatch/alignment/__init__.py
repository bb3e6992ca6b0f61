"""``bm.BlindAligner`` and its steps: frames, centres, refinement, neighbours, and the resulting map."""
