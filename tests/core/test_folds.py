"""Whether the caller of a fit chose records as its charge covers."""

import pickle
import types

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from privfeat.core.folds import are_covered, covered_rows, learns, uncovered_choice

VALIDATION = "sklearn.model_selection._validation"


def call(module, function, train=None, adjacency="add_remove"):
    """Ask from a function of that name, in a module of that name."""
    source = f"def {function}(train):\n    return ask({adjacency!r})"
    made = types.ModuleType(module)
    made.ask = uncovered_choice
    exec(source, vars(made))
    found = getattr(made, function)(train)
    return found and found.what


def test_mark_holds_for_all_rows_alone():
    rows = covered_rows(np.array([5, 3, 9]))
    assert rows.tolist() == [5, 3, 9]
    for same in (rows, np.asarray(rows), rows[:], pickle.loads(pickle.dumps(rows))):
        assert are_covered(same)
    for other in (rows[:2], rows[[0, 1]], rows[::-1], rows + 0 * rows[0] + 1):
        assert not are_covered(other)
    for other in (np.array([5, 3, 9]), [5, 3, 9], None, np.zeros(3)):
        assert not are_covered(other)
    changed = rows.copy()
    changed[0] = 4
    assert not are_covered(changed)


@pytest.mark.parametrize("function", ["_fit_and_score", "_fit_and_predict"])
def test_fits_on_folds_are_covered_by_the_mark(function):
    assert call(VALIDATION, function, covered_rows(np.arange(4))) is None
    for rows in (np.arange(4), covered_rows(np.arange(4))[1:], None):
        assert call(VALIDATION, function, rows) == f"{VALIDATION}.{function}"


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (VALIDATION, "cross_validate"),
        (VALIDATION, "validation_curve"),
        ("sklearn.model_selection._search", "fit"),
        ("sklearn.pipeline", "fit"),
        ("sklearn.utils", "__call__"),
        ("sklearnlike", "choose"),
        ("own.sklearn", "choose"),
    ],
)
def test_what_hands_on_all_records_is_covered(module, function):
    assert call(module, function) is None


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (VALIDATION, "permutation_test_score"),
        (VALIDATION, "_a_new_function"),
        ("sklearn.model_selection._a_new_module", "fit"),
        ("sklearn.pipelines", "fit"),
        ("imblearn.pipeline", "fit"),
        ("sklearn.ensemble._bagging", "_parallel_build_estimators"),
        ("sklearn.ensemble._stacking", "fit"),
        ("sklearn", "fit"),
    ],
)
def test_what_is_not_known_is_not_covered(module, function):
    rows = covered_rows(np.arange(4))
    assert call(module, function, rows) == f"{module}.{function}"


def test_pairs_of_classes_are_covered_under_add_remove_alone():
    assert call("sklearn.multiclass", "_fit_ovo_binary") is None
    name = "sklearn.multiclass._fit_ovo_binary"
    assert call("sklearn.multiclass", "_fit_ovo_binary", None, "replace_one") == name
    assert call("sklearn.multiclass", "_fit_binary", None, "replace_one") is None


def test_every_caller_is_looked_at():
    def outer():
        return call("sklearn.pipeline", "fit")

    made = types.ModuleType("sklearn.unknown")
    exec("def inside(f):\n    return f()", vars(made))
    assert made.inside(outer) == "sklearn.unknown.inside"


@pytest.mark.parametrize(
    ("function", "learned"),
    [
        *((None, False), (np.tanh, False)),
        *((np.mean, True), (np.matvec, True)),  # a ufunc of whole axes
        (lambda X: X, True),
    ],
)
def test_functions_of_whole_arrays_may_learn(function, learned):
    assert learns(FunctionTransformer(function)) is learned


def as_job(work):
    """Call in what scikit-learn wraps a job with."""
    made = types.ModuleType("sklearn.utils.parallel")
    exec("def __call__(f):\n    return f()", vars(made))
    return vars(made)["__call__"](work)


def test_a_job_whose_sender_is_not_seen_is_covered_by_the_mark_alone():
    rows = covered_rows(np.arange(4))
    assert as_job(lambda: call(VALIDATION, "_fit_and_score", rows)) is None
    for module, function in (
        ("sklearn.multiclass", "_fit_binary"),
        (VALIDATION, "cross_validate"),
        ("elsewhere", "fit"),
    ):
        found = as_job(lambda m=module, f=function: call(m, f))
        assert found.startswith("a parallel job")
    made = types.ModuleType("sklearn.multiclass")  # sends the job in this very thread
    exec("def fit(f):\n    return f()", vars(made))
    assert made.fit(lambda: as_job(lambda: call("sklearn.multiclass", "f"))) is None
