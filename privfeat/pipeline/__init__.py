"""Private preprocessing and a private model as one estimator, with one budget."""

from privfeat.pipeline.private_pipeline import PrivatePipeline

__all__ = ["PrivatePipeline"]
