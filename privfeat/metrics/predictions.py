"""Labels and predictions, of which each depends on its own record alone."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import validate_data

from privfeat._messages import array_of, without_data, without_warnings
from privfeat._process import keeps_one_thread, one_thread_a_product
from privfeat.core.callers.stateless import DECLARED, is_exactly
from privfeat.core.sums.records import full_chunks
from privfeat.data import LazyFeatures
from privfeat.estimation.inputs import array_of_records
from privfeat.estimation.labels import check_kinds, places_of
from privfeat.estimation.plain import frame_of, plain_records
from privfeat.persistence import is_ours

# What is kept of predictions, row by row.
Shorten = Callable[[Any], NDArray[Any]]
# What is around a model has it under one of these names, the fitted one first.
_INNER = ("best_estimator_", "estimator_", "estimator")
_NAMES = "feature_names_in_"
# They hand a table on as it is; others make an array of it, with one type for each
# column, or for all.
_HANDS_ON = {
    "sklearn": {
        *("CalibratedClassifierCV", "FixedThresholdClassifier", "FrozenEstimator"),
        *("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "Pipeline"),
        *("RandomizedSearchCV", "TunedThresholdClassifierCV"),
    },
    "imblearn": {"Pipeline"},
}
# Assumed of a model with parts that are not ours.
_NO_MEMORY = (
    "that the model, which got one record at a time, keeps nothing of a record for the "
    "next"
)


def rows_of(model: Any, X: Any) -> Any:
    """Return records as an array, of columns that the model was fitted to.

    Or as the table that they are, where parts of a model read columns by names. One
    that is not ours sees numbers as float64, or texts: `plain_records`, with its
    TypeError. `PublicColumns` gets values as they are where all around it hand them on.
    """
    X = frame_of(X)
    *around, first = parts = [*_inwards(model)]
    ours = all(map(_is_of_privfeat, parts))
    handed_on = is_exactly(first, DECLARED) and all(
        _is_of_privfeat(part) or is_exactly(part, _HANDS_ON) for part in around
    )
    if without_data(hasattr, X, "columns"):  # whose order may be another
        if handed_on:
            with without_warnings():
                clone(first).fit(X)  # checks the names; ignored ones may be missing
            return X  # each column with its type: as in a fit, float32 may be refused
        named = (each for each in _inwards(model) if hasattr(each, _NAMES))
        fitted = next(named, model)
        without_data(validate_data, fitted, X, reset=False, skip_check_array=True)
        if ours and _reads_names(model):
            return X
    if isinstance(X, LazyFeatures):
        X = X[:]
    if issparse(X):
        raise TypeError(
            "X must be dense to be measured, got a sparse matrix. Pass X.toarray()."
        )
    if ours or handed_on:
        return array_of_records(X)
    rows = plain_records(X)
    return rows if _reads_names(model) else array_of_records(rows)


def _is_of_privfeat(part: Any) -> bool:
    return type(part).__module__.startswith("privfeat.")


def _inwards(model: Any) -> Iterator[Any]:
    """Yield a model, what it is around, and so on; of a chain its first step."""
    while model is not None:
        yield model
        chain = hasattr(model, "named_steps")
        name = next((name for name in _INNER if hasattr(model, name)), "no such")
        model = model[0] if chain else getattr(model, name, None)


def assumed_of(model: Any) -> list[str]:
    """Return what is assumed of a model: of parts that are not ours, no memory.

    Such are what it is around, and frozen steps of a chain.
    """
    for each in _inwards(model):
        steps = getattr(each, "steps", ())
        if not is_ours(each) or any(type(s) is FrozenEstimator for _, s in steps):
            return [_NO_MEMORY]
        if steps:
            break
    return []


def _reads_names(part: Any) -> bool:
    """Return whether a part of a model may read columns by names."""
    if hasattr(part, "array_order") or type(part).__name__ == "ColumnTransformer":
        return True
    parts = vars(part).values() if hasattr(part, "get_params") else ()
    if isinstance(part, list | tuple):
        parts = part
    return any(_reads_names(inner) for inner in parts)


def record_by_record(
    model: Any,
    method: str,
    rows: NDArray[Any],
    shorten: Shorten,
    *,
    charged: bool = False,
) -> NDArray[Any]:
    """Return what ``shorten`` makes of the predictions of each record.

    A model of privfeat gets 1,024 ``rows`` at a time, the last filled up with zeros, on
    one core, and predicts each by itself; a `PrivatePipeline`, which does that with its
    own steps, gets all at once; any other one gets one row at a time. Its ``method``
    returns finite numbers, a row of them or one for each record, and ``shorten`` makes
    an array of several, row by row. With ``charged`` a number that is not finite counts
    as 0: after the charge an error would reveal a record.

    ValueError if a prediction is not finite, unless ``charged``, or there is not one
    for each record.
    """
    ours = is_ours(model)
    linear = ours and hasattr(model, "coef_")  # networks multiply by XLA
    found: list[NDArray[Any]] = []
    # the names of columns were compared; chunks of arrays have none
    with one_thread_a_product(), without_warnings(UserWarning):
        alone = not ours or (linear and not keeps_one_thread())
        chunks = full_chunks(rows, alone=alone)
        if ours and getattr(model, "predicts_by_record", False):
            chunks = iter([rows])
        elif hasattr(rows, "iloc"):
            chunks = (rows.iloc[place : place + 1] for place in range(len(rows)))
        for chunk in chunks:
            predicted = without_data(getattr(model, method), chunk)
            given = array_of(predicted)
            if given.dtype.kind == "f" and not np.all(np.isfinite(given)):
                if not charged:
                    raise ValueError("model must predict finite numbers.")
                given = np.where(np.isfinite(given), given, 0.0)
            if len(given) != len(chunk):
                raise ValueError("model must predict one row for each record.")
            # a copy: the model may write its next answer where this one stands
            found.append(np.array(shorten(given)))
    return np.concatenate(found)[: len(rows)]


def are_right(model: Any, rows: Any, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which records a fitted classifier predicts right, each by itself.

    ``rows`` are what the model takes, of n records, and ``labels`` theirs: sensitive.
    ValueError if the model does not predict one label for each record.
    """
    if not len(labels):  # their number is secret
        return np.zeros(0, bool)
    predicted = record_by_record(model, "predict", rows, _column, charged=True)
    return np.asarray(predicted == labels)


def _column(predicted: Any) -> NDArray[Any]:
    labels = array_of(predicted)
    if labels.ndim != 1:
        raise ValueError("model must predict one label for each record.")
    return labels


def numbers_of(values: Any) -> NDArray[np.float64]:
    """Return one finite number for each record."""
    found = array_of(values, np.float64)
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise ValueError("targets and predictions must be one finite number a record.")
    return found + 0.0  # -0 and 0 are one in a table of whole numbers


def codes_of(
    name: str, labels: NDArray[Any], classes: NDArray[Any]
) -> NDArray[np.intp]:
    """Return the class of each label, by its place among the classes."""
    check_kinds(name, labels, classes)
    codes, found = without_data(places_of, labels, classes)
    # a list with one fraction in it would make floats of all, which merge large numbers
    exact = labels.dtype.kind != "f" or bool(np.all(np.abs(labels) < 2.0**53))
    if labels.ndim != 1 or not (found and exact):
        raise ValueError(f"{name} must hold one label a row, each among the classes.")
    return codes


def classes_and_scores(classes: NDArray[Any], predicted: Any) -> NDArray[np.float64]:
    """Return the predicted class of each record, by its place, and its score.

    Predictions are probabilities, of which the largest counts, or labels. The score is
    that probability; of two classes the one of the second; 0 beside a label.
    """
    given, n_classes = array_of(predicted), len(classes)
    if given.ndim == 1:
        codes = codes_of("predictions", given, classes)
        return np.stack([codes, np.zeros(len(codes))], axis=1)
    given = array_of(given, np.float64)
    if given.shape[1:] != (n_classes,) or not np.all(np.isfinite(given)):
        raise ValueError("probabilities must be finite, one for each class.")
    score = given[:, 1] if n_classes == 2 else given.max(axis=1)
    return np.stack([given.argmax(axis=1), score], axis=1)
