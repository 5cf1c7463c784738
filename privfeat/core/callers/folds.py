"""Whether the charge of a fit covers the choice of its records: all of them, or a fold.

The statement protects the records that `fit` got. The ledger protects the data set from
which they were chosen. Both are the same if neighbouring data sets give neighbouring,
or equal, training sets: if a record itself decides whether it is trained on. In
stratified and positional folds one record moves others. A step of a pipeline may learn
from all records how to change each. A fit cannot see how its records were chosen, so it
looks at the functions of scikit-learn that called it, and takes those it does not know
for choices that no charge covers. A job in another thread or process does not show who
sent it: there only folds are known that were drawn where this could be seen.

Records are meant, not parameters: a search by exact scores fits its best candidate on
all records, and no charge covers which one that is. `selection/ahead` warns of it as
the search asks `HashKFold` for folds, a fit in folds that were drawn before does so
itself (`uncovered_or_scored`), and `selection/cost` says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privfeat._types import Adjacency
from privfeat.core.callers.forms import form_varies
from privfeat.core.callers.marked_rows import SEEN, are_covered
from privfeat.core.callers.stack import Caller, callers
from privfeat.core.callers.stateless import (
    CONTAINERS,
    chooses_columns,
    first_to_learn,
    is_exactly,
)

SCORES = (
    "the scores of a search and what it selects by them have no privacy guarantee at "
    "any epsilon{of}. DPRandomizedSearch is a private one, of records"
)
# imbalanced-learn draws records by the labels of all; MLflow scores fits on them.
_CHOOSERS = ("sklearn", "imblearn", "mlflow")
_SEARCH = "sklearn.model_selection._search"
# Modules that pass on all rows that they were given, or none; in `multiclass` those of
# two classes, which the label of each row decides.
_WHOLE = (
    "sklearn.base",  # `fit_transform`, `fit_predict`
    "sklearn.compose",  # columns of all rows; `_steps_before` looks at them
    _SEARCH,  # the last fit, on all
    "sklearn.multiclass",
    "sklearn.multioutput",  # one column of targets after the other
    "sklearn.pipeline",  # what its steps make of all rows: as above
    "sklearn.utils",  # wraps methods, and sends jobs; `resample` calls no fit
    "mlflow.utils",  # wraps methods, whether MLflow logs or not
)
_VALIDATION = "sklearn.model_selection._validation"
# Functions of that module that fit on the rows in their local ``train``.
_ON_FOLDS = ("_fit_and_score", "_fit_and_predict")
_AROUND_FOLDS = (
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "validation_curve",
)
# What to do instead of what takes no folds, or whose folds are not all that it needs.
_INSTEAD = {
    "sklearn.calibration": "Use privfeat.TemperatureScaling, charged apart.",
    "mlflow.sklearn": "MLflow's autologging writes exact scores on the records of a "
    "fit into its run: call mlflow.sklearn.autolog(disable=True).",
}
_UNSUPPORTED = "No folds cover this, it is not supported: fit the estimator without it."
_LEARN_NOTHING = (
    "Pass steps that learn nothing; wrap those fitted before, on public records or for "
    "a charge of their own, and functions of one row after the other, in "
    "sklearn.frozen.FrozenEstimator. A ColumnTransformer needs sparse_threshold=0: "
    "else zeros of all records decide whether its rows are dense."
)
_ONE_TYPE = (
    "One record makes floats of a column of whole numbers, or texts of its numbers, "
    "and steps may compute otherwise with those. Pass all numbers as float64, as "
    "by X.astype(float) + 0.0 or np.asarray(X, float) + 0.0, sparse ones "
    "after X.sum_duplicates(), and texts alone, one for each record; or begin with "
    "privfeat.PublicColumns; or use privfeat.PrivatePipeline."
)
_JOBS = "sklearn.utils.parallel"


@dataclass(frozen=True)
class Uncovered:
    """What chose or changed the records so that no charge covers it, and a remedy."""

    what: str
    remedy: str


def uncovered_choice(adjacency: Adjacency) -> Uncovered | None:
    """Return which function of scikit-learn chose records as no charge covers.

    None if all of them around this call pass on all records, or those of
    `covered_rows`, as they are. A choice in other code cannot be seen.
    """
    return _choice(callers(*_CHOOSERS), adjacency)


def uncovered_or_scored(
    adjacency: Adjacency,
) -> tuple[Uncovered | None, bool, bool]:
    """Return `uncovered_choice`, and whether what called scores the fit, or chooses it.

    Scores in folds that it did not ask for: of others, `selection/ahead` has warned.
    """
    around = callers(*_CHOOSERS)
    trained = [
        caller.frame.f_locals.get("train")
        for caller in around
        if caller.module == _VALIDATION and caller.function in _ON_FOLDS
    ]
    drawn = [are_covered(rows) and not are_covered(rows, SEEN) for rows in trained]
    chooses = any(caller.module == _SEARCH for caller in around)
    return _choice(around, adjacency), any(drawn), chooses


def _choice(around: Sequence[Caller], adjacency: Adjacency) -> Uncovered | None:
    """Return the first of these callers, from within, whose choice is not covered."""
    # of scikit-learn; of a job what it was sent to do, and on which rows
    outermost, job, rows = "", "", None
    for place, caller in enumerate(around):
        module, function, names = *caller[:2], caller.frame.f_locals
        if not _hands_on(caller) or (
            # a record replaced by one of another class makes training sets of other
            # sizes, which a fit under replace-one takes for public
            adjacency == "replace_one" and function == "_fit_ovo_binary"
        ):
            return Uncovered(f"{module}.{function}", _remedy(around[place:]))
        steps = _steps_before(module, names)
        if (step := first_to_learn(steps)) is not None:
            what = f"what {type(step).__name__} learned from all of them"
            return Uncovered(what, _LEARN_NOTHING)
        targets = module == "sklearn.compose._target"
        given = names.get("y" if targets else "X")
        if steps and form_varies(given, steps[0], targets=targets):
            return Uncovered("the types of columns", _ONE_TYPE)
        if module != _JOBS:
            job, rows = f"{module}.{function}", names.get("train")
        outermost = module
    # Who drew folds before did not see what is around those who fit on them.
    on_folds = job in {f"{_VALIDATION}.{f}" for f in _ON_FOLDS}
    if outermost == _JOBS and not (on_folds and are_covered(rows, SEEN)):
        return Uncovered(
            f"a parallel job, which does not show who sent it ({job or 'unknown'})",
            "Pass n_jobs=None to what is around the estimator, or HashKFold() itself "
            "in the place of its folds, without return_indices.",
        )
    return None


def _remedy(around: Sequence[Caller]) -> str:
    """Return what to do about a choice in the first of these or in those around it."""
    for caller in around:
        takes_folds = caller.function in _ON_FOLDS or _asks_for_folds(caller)
        module = caller.module
        if not (_is_whole(module) or (module == _VALIDATION and takes_folds)):
            return _INSTEAD.get(module, _UNSUPPORTED)
    return "Pass cv=privfeat.HashKFold()."


def _asks_for_folds(caller: Caller) -> bool:
    """Return whether a function of validation fits on whole folds, and on all labels.

    ``cross_val_predict`` of probabilities gives them the numbers that all have.
    """
    predicts = caller.frame.f_locals.get("method", "predict") == "predict"
    return caller.function in _AROUND_FOLDS and predicts


def _is_whole(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _WHOLE)


def _hands_on(caller: Caller) -> bool:
    if caller.module != _VALIDATION:
        return _is_whole(caller.module)
    if caller.function in _ON_FOLDS:
        return are_covered(caller.frame.f_locals.get("train"))
    return _asks_for_folds(caller)


def _steps_before(module: str, names: dict[str, Any]) -> list[Any]:
    """Return the steps that changed the records before this function called a fit."""
    if module == "sklearn.pipeline":
        chain = names.get("self")  # a subclass may learn beside its steps
        if chain is not None and not is_exactly(chain, CONTAINERS):
            return [chain]
        return [step for _, step in getattr(chain, "steps", ())[:-1]]
    if module == "sklearn.compose._column_transformer":
        columns = names.get("self")
        return [] if columns is None or not chooses_columns(columns) else [columns]
    if module == "sklearn.compose._target":
        return [getattr(names.get("self"), "transformer_", None)]
    return []
