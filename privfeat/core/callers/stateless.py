"""Which steps learn nothing: each row alone decides what it becomes.

By the exact class: a subclass has the methods, and the tags, of a user.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# It takes values one by one, and makes floats.
DECLARED = {"privfeat": {"PublicColumns"}}

# They compute each entry of a row from that row alone, and learn nothing in `fit`. That
# they round it alike in calls of any size is supposed.
_STATELESS = {
    "sklearn.preprocessing": {
        *("Binarizer", "FunctionTransformer", "Normalizer", "PolynomialFeatures"),
    },
    "sklearn.feature_extraction": {"HashingVectorizer"},
    **DECLARED,
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
    Zeros of all records choose between sparse and dense rows, whose sums differ in
    their last digits, unless ``sparse_threshold`` is 0.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return False
    if type(step).__module__.startswith("sklearn.frozen"):  # has what it wraps has
        return False
    if not is_exactly(step, CONTAINERS):
        return not is_stateless(step)
    if hasattr(step, "transformers"):
        if step.sparse_threshold != 0 or chooses_columns(step):
            return True
    return first_to_learn(_parts(step)) is not None


def first_to_learn(steps: Sequence[Any]) -> Any:
    """Return the first of steps that `learns`; or None."""
    return next(filter(learns, steps), None)


def _parts(container: Any) -> list[Any]:
    if hasattr(container, "transformers"):
        return [*(part[1] for part in container.transformers), container.remainder]
    chain = hasattr(container, "steps")
    return [p[1] for p in (container.steps if chain else container.transformer_list)]


def chooses_columns(transformer: Any) -> bool:
    """Return whether records choose columns of this ``ColumnTransformer``."""
    known = is_exactly(transformer, CONTAINERS)  # a subclass may do anything
    return not known or any(
        _chosen_by_records(part[2]) for part in transformer.transformers
    )


def _chosen_by_records(columns: Any) -> bool:
    """Return whether a function of all records chooses these columns.

    That of scikit-learn goes by names, and by types if it is told some.
    """
    if not is_exactly(columns, {"sklearn": {"make_column_selector"}}):
        return callable(columns)
    return columns.dtype_include is not None or columns.dtype_exclude is not None
