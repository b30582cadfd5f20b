"""Joint moves: rules that change tiling program and kernel at once, as either half alone is wrong, or of no worth."""
