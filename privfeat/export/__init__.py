"""Fitted models for other programs: ONNX, safetensors, the hub and MLflow.

What each writes holds released numbers and what a statement covers or assumes public:
no seed, no ledger, no path, no user, no number of records (``docs/what-leaves.md``).
"""

from privfeat.export.hub import Upload, push_to_hub
from privfeat.export.onnx import export_onnx
from privfeat.export.safetensors import export_safetensors

__all__ = ["Upload", "export_onnx", "export_safetensors", "push_to_hub"]
