"""Records of a network, and the names of their columns where they are a table."""

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from privfeat._messages import without_data
from privfeat.estimation.inputs import is_table
from privfeat.estimation.problem import Problem
from privfeat.networks.images.records import as_records

NAMES = "feature_names_in_"


def with_names(problem: Problem, X: Any) -> Problem:
    """Return the problem with the names of the columns, where ``X`` is a table.

    Raises
    ------
    TypeError
        If some names are strings and some are not.
    """
    named = BaseEstimator()
    if is_table(X):
        without_data(validate_data, named, X, skip_check_array=True)
    if not hasattr(named, NAMES):
        return problem
    return replace(
        problem,
        fitted=problem.fitted | {NAMES: named.feature_names_in_},
        public=(*problem.public, "the names of the features"),
    )


def records_for(model: Any, X: Any) -> Any:
    """Return records as an array, of the shape and the columns a network was fitted to.

    As scikit-learn has it, a table whose columns have other names, or another order, is
    refused, and if one of both has names and the other has none, it warns.

    Raises
    ------
    TypeError, ValueError
        As `as_records`, and for records of another shape or of other columns.
    """
    if is_table(X):
        without_data(validate_data, model, X, reset=False, skip_check_array=True)
    records, shape = as_records(X), model.input_shape_
    if records.shape[1:] != shape:
        raise ValueError(
            f"X must hold records of shape {shape}, got {records.shape[1:]}."
        )
    return records
