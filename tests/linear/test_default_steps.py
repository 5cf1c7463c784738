"""How many steps the estimators take by default, how large, and what they reach."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from privfeat import DPFC, DPAdamLinear

X, Y = load_digits(return_X_y=True)
OF_TEN = {"classes": range(10), "random_state": 0}


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    ("cls", "written_out"),
    [
        (DPFC, {"n_iter": 20, "learning_rate": 16.0}),
        (DPAdamLinear, {"n_iter": 12, "learning_rate": 0.85 / np.sqrt(12)}),
    ],
)
def test_defaults_are_those_of_the_docstring(cls, written_out):
    """16 is 1.6 times the ten classes."""
    found = cls(**OF_TEN).fit(X, Y)
    expected = cls(**OF_TEN, **written_out).fit(X, Y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.n_iter_ == written_out["n_iter"]


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    ("options", "written_out"),
    [
        ({"loss": "sigmoid"}, {"n_iter": 100, "learning_rate": 4.0}),
        ({"loss": "squared"}, {"n_iter": 100, "learning_rate": 1.0}),
        ({"classes": range(2)}, {"n_iter": 20, "learning_rate": 4.0}),
    ],
)
def test_steps_and_rate_follow_loss_and_classes(options, written_out):
    """No step is larger than 4 where no average over classes bounds the curvature."""
    options = {"classes": range(3), "random_state": 0, **options}
    few = np.isin(Y, options["classes"])
    found = DPFC(**options).fit(X[few], Y[few])
    expected = DPFC(**options, **written_out).fit(X[few], Y[few])
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("epsilon", [0.5, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("cls", "many_steps"),
    [
        (DPFC, {"n_iter": 100, "learning_rate": 4.0}),
        (DPAdamLinear, {"n_iter": 50}),
    ],
)
def test_few_steps_reach_what_many_reach(cls, many_steps, epsilon):
    """On the training records, which is what steps are for; the keys are fixed."""

    def accuracy(**options):
        fits = (
            cls(epsilon=epsilon, classes=range(10), random_state=seed, **options)
            for seed in range(4)
        )
        return np.mean([clf.fit(X, Y).score(X, Y) for clf in fits])

    assert accuracy() > accuracy(**many_steps) - 0.01
