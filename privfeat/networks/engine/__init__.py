"""From a batch of records to the sum of their clipped gradients."""
