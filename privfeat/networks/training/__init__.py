"""From sums of clipped gradients to a trained network, step by step."""
