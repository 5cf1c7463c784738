"""Whether the caller of a fit chose records as its charge covers."""

import pickle
import types

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from privfeat.core.callers.folds import uncovered_choice, uncovered_or_scored
from privfeat.core.callers.marked_rows import are_covered, covered_rows

VALIDATION = "sklearn.model_selection._validation"


def asked(ask, module, function, train=None, adjacency="add_remove"):
    """Ask from a function of that name, in a module of that name."""
    source = f"def {function}(train):\n    return ask({adjacency!r})"
    made = types.ModuleType(module)
    made.ask = ask
    exec(source, vars(made))
    return getattr(made, function)(train)


def call(module, function, train=None, adjacency="add_remove"):
    found = asked(uncovered_choice, module, function, train, adjacency)
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
    ("module", "function", "seen", "scored"),
    [
        (VALIDATION, "_fit_and_score", False, True),
        (VALIDATION, "_fit_and_predict", False, True),
        (VALIDATION, "_fit_and_score", True, False),  # warned as it asked for folds
        (VALIDATION, "cross_validate", False, False),
        ("sklearn.pipeline", "_fit_and_score", False, False),
    ],
)
def test_a_fit_in_folds_drawn_before_is_scored(module, function, seen, scored):
    rows = covered_rows(np.arange(4), seen=seen)
    told = asked(uncovered_or_scored, module, function, rows)
    assert told == (None, scored, False)
    # of rows that are not covered the other half of the answer speaks
    assert asked(uncovered_or_scored, module, function, np.arange(4))[1] is False


def test_a_fit_in_a_search_is_chosen():
    for module in ("sklearn.model_selection._search", "sklearn.pipeline"):
        told = asked(uncovered_or_scored, module, "fit", None)
        assert told == (None, False, module.endswith("_search"))


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (VALIDATION, "cross_validate"),
        (VALIDATION, "validation_curve"),
        ("sklearn.model_selection._search", "fit"),
        ("sklearn.pipeline", "fit"),
        ("sklearn.utils", "__call__"),
        ("mlflow.utils.autologging_utils.safety", "safe_patch_function"),
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
        ("mlflow.sklearn", "fit_mlflow"),
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


def remedy_of(*callers):
    """Ask in fits on rows without a mark, which these called: (module, function)."""

    def ask(train=None):
        return uncovered_choice("add_remove").remedy

    for module, function in reversed([*callers, (VALIDATION, "_fit_and_score")]):
        made = types.ModuleType(module)
        made.ask = ask
        exec(f"def {function}(train=None):\n    return ask()", vars(made))
        ask = getattr(made, function)
    return ask()


@pytest.mark.parametrize(
    ("callers", "remedy"),
    [
        ([], "Pass cv"),
        ([("sklearn.model_selection._search", "fit")], "Pass cv"),
        ([(VALIDATION, "cross_validate")], "Pass cv"),
        ([("own.sklearn", "fit"), (VALIDATION, "validation_curve")], "Pass cv"),
        ([("mlflow.sklearn", "fit_mlflow")], "MLflow's autologging writes exact"),
        ([(VALIDATION, "learning_curve")], "No folds cover this"),
        ([(VALIDATION, "permutation_test_score")], "No folds cover this"),
        ([("sklearn.ensemble._stacking", "_fit_and_score")], "No folds cover this"),
        (
            [("sklearn.model_selection._search_successive_halving", "fit")],
            "No folds cover this",
        ),
        ([("sklearn.calibration", "fit")], "Use privfeat.TemperatureScaling"),
    ],
)
def test_the_remedy_goes_by_all_that_is_around_the_fit(callers, remedy):
    assert remedy_of(*callers).startswith(remedy)


def test_every_caller_is_looked_at():
    def outer():
        return call("sklearn.pipeline", "fit")

    made = types.ModuleType("sklearn.unknown")
    exec("def inside(f):\n    return f()", vars(made))
    assert made.inside(outer) == "sklearn.unknown.inside"


FIXED, LEARNING = Normalizer(), StandardScaler()


class LearningChain(Pipeline):
    """A chain that learns beside its steps."""


def call_of(module, chain=None, **fields):
    """Ask from a method of a chain, or of what has these fields, in that module."""
    made = types.ModuleType(module)
    made.ask = uncovered_choice
    exec("def fit(self, X, y):\n    return ask('add_remove')", vars(made))
    found = made.fit(chain or types.SimpleNamespace(**fields), np.eye(2), np.ones(2))
    return found and found.what


@pytest.mark.parametrize(
    ("before", "covered"),
    [
        ([], True),
        ([FIXED, "passthrough", None], True),
        ([LEARNING], False),
        ([LEARNING, FIXED], False),
        ([FIXED, LEARNING], False),
    ],
)
def test_steps_before_a_fit_must_learn_nothing(before, covered):
    """Its own step, the last, is not one of them."""
    steps = [("any", step) for step in [*before, LEARNING]]
    expected = None if covered else "what StandardScaler learned from all of them"
    assert call_of("sklearn.pipeline", Pipeline(steps)) == expected
    assert call_of("sklearn.multiclass", steps=steps) is None
    learning = "what LearningChain learned from all of them"
    assert call_of("sklearn.pipeline", LearningChain(steps)) == learning


def test_what_changes_the_target_before_a_fit_must_learn_nothing():
    module = "sklearn.compose._target"
    assert call_of(module, transformer_=FIXED) is None
    assert call_of(module) is None
    refused = "what StandardScaler learned from all of them"
    assert call_of(module, transformer_=LEARNING) == refused
    assert call_of("sklearn.multiclass", transformer_=LEARNING) is None


def as_job(work):
    """Call in what scikit-learn wraps a job with."""
    made = types.ModuleType("sklearn.utils.parallel")
    exec("def __call__(f):\n    return f()", vars(made))
    return vars(made)["__call__"](work)


def test_a_job_whose_sender_is_not_seen_is_covered_by_the_mark_alone():
    rows = covered_rows(np.arange(4), seen=True)
    assert are_covered(rows)
    assert as_job(lambda: call(VALIDATION, "_fit_and_score", rows)) is None
    drawn_before = covered_rows(np.arange(4))  # outside of what fits on them
    found = as_job(lambda: call(VALIDATION, "_fit_and_score", drawn_before))
    assert found.startswith("a parallel job")
    for module, function, job in (
        ("sklearn.multiclass", "_fit_binary", "sklearn.multiclass._fit_binary"),
        (VALIDATION, "cross_validate", f"{VALIDATION}.cross_validate"),
        ("elsewhere", "fit", "unknown"),
    ):
        found = as_job(lambda m=module, f=function: call(m, f))
        assert found.startswith("a parallel job")
        assert found.endswith(f"({job})")
    made = types.ModuleType("sklearn.multiclass")  # sends the job in this very thread
    exec("def fit(f):\n    return f()", vars(made))
    assert made.fit(lambda: as_job(lambda: call("sklearn.multiclass", "f"))) is None
