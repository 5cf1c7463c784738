"""Which steps learn nothing: each row alone decides what it becomes.

By the exact class: a subclass has the methods, and the tags, of a user.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

# They compute each entry of a row from that row alone, round it alike in calls of any
# size, and learn nothing in `fit`.
_STATELESS = {
    "sklearn.preprocessing": {
        *("Binarizer", "FunctionTransformer", "Normalizer", "PolynomialFeatures"),
    },
    "sklearn.feature_extraction": {"FeatureHasher", "HashingVectorizer"},
    "privfeat": {"PublicColumns"},
}

# They learn what their parts learn.
CONTAINERS = {
    "sklearn": {"ColumnTransformer", "FeatureUnion", "Pipeline"},
    "imblearn": {"Pipeline"},
}


def is_stateless(given: Any) -> bool:
    """Return whether `fit` reads nothing of the records that `transform` uses."""
    if not is_exactly(given, _STATELESS):
        return False
    kind = type(given).__name__
    if kind == "FunctionTransformer":
        func = given.func
        # of NumPy itself: those of ``frompyfunc`` call a function of a user
        plain = isinstance(func, np.ufunc) and func.signature is None
        plain = plain and not {"d->d", "d->?"}.isdisjoint(func.types)
        return func is None or (plain and not given.kw_args)
    if kind == "HashingVectorizer":  # functions of a user might remember texts
        functions = given.analyzer, given.tokenizer, given.preprocessor
        return not any(map(callable, (*functions, given.strip_accents)))
    return True


def is_exactly(given: Any, known: Mapping[str, set[str]]) -> bool:
    """Return whether it is of one of these classes, by module, and no subclass."""
    home, kind = type(given).__module__, type(given).__name__
    return any(
        kind in names and home.startswith(f"{module}.")
        for module, names in known.items()
    )


def learns(step: Any) -> bool:
    """Return whether a step of a pipeline may learn anything from the records.

    Only those of `is_stateless` are known not to, and what is declared to be frozen.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return False
    if type(step).__module__.startswith("sklearn.frozen"):  # has what it wraps has
        return False
    if is_exactly(step, CONTAINERS):
        for parts in ("steps", "transformer_list"):
            if hasattr(step, parts):
                return any(learns(part[1]) for part in getattr(step, parts))
        return learns(getattr(step, "remainder", None)) or any(
            learns(part[1]) or _chosen_by_records(part[2]) for part in step.transformers
        )
    return not is_stateless(step)


def _chosen_by_records(columns: Any) -> bool:
    """Return whether a function of all records chooses these columns.

    That of scikit-learn goes by names and types alone.
    """
    return callable(columns) and type(columns).__name__ != "make_column_selector"
