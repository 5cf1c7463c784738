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
    load_statement,
    load_table,
)

# What "as" brings in is for this package alone: users have no promise of it.
from privfeat.persistence.loading import load_predictor as load_predictor
from privfeat.persistence.model_folder import ModelFileError
from privfeat.persistence.saving import save
from privfeat.persistence.saving import written_before as written_before
from privfeat.persistence.written import is_ours as is_ours

__all__ = [
    "ModelFileError",
    "load",
    "load_class_names",
    "load_origin",
    "load_statement",
    "load_table",
    "save",
]
