"""Fitted estimators on disk: one folder with JSON and NumPy arrays, never pickle.

``model.json`` holds the class name, the constructor parameters and the privacy
statement, readable by eye; ``arrays-<hash>.npz`` holds the fitted arrays. Loading
runs no code from the files, checks a SHA-256 of both, and refuses what ``save`` never
writes: seeds, ledgers and paths, other fields, types and shapes, and a statement whose
epsilon its releases do not give. The checksums show damage, not forgery: a person who
can write the folder can write another statement, with releases to match.
"""

from privfeat.persistence.loading import (
    load,
    load_class_names,
    load_origin,
    load_predictor,
    load_statement,
    load_table,
)
from privfeat.persistence.model_folder import ModelFileError
from privfeat.persistence.saving import save, written_before
from privfeat.persistence.written import is_ours

__all__ = [
    "ModelFileError",
    "is_ours",
    "load",
    "load_class_names",
    "load_origin",
    "load_predictor",
    "load_statement",
    "load_table",
    "save",
    "written_before",
]
