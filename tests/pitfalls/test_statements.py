"""What a fit shows, and what it may depend on: rows 1 and 25 to 27."""

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPSGDClassifier,
    PrivacyError,
    TemperatureScaling,
)
from privfeat.estimation.labels import encode_labels
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")

# 1 -- the set of labels was read from private data


def check_01(spy, make, data):
    """The neighbour loses the only record of a class."""
    X, y = data
    rare = np.where(y == 2, 0, y)
    rare[4] = 2
    without = np.delete(X, 4, axis=0), np.delete(rare, 4)
    for cls in (DPLeastSquares, DPFC):
        one, two, *_ = replay(spy, lambda cls=cls: make(cls), (X, rare), without)
        assert_same_state(one, two)
        assert one.coef_.shape == (3, 4)


def test_01_a_class_that_loses_its_only_record_stays(spy, make, three_classes):
    check_01(spy, make, three_classes)


def test_01_notices_classes_read_from_the_labels(spy, make, three_classes, plant):
    plant("codes of the labels", lambda y, classes: encode_labels(y, None))
    with pytest.raises((AssertionError, ValueError)):
        check_01(spy, make, three_classes)


# 25 -- exact diagnostics were returned: losses, norms, counts, convergence


def check_25(spy, make, one_less):
    for cls in (DPLeastSquares, DPFC, DPAdamLinear):
        one, two, *_ = replay(spy, lambda cls=cls: make(cls), *one_less)
        assert_same_state(one, two)


def test_25_fitted_state_holds_nothing_but_releases(spy, make, one_less):
    check_25(spy, make, one_less)


@pytest.mark.parametrize("fit", ["classifier", "temperature", "network"])
@pytest.mark.parametrize("wrong", ["ragged", "no features", "ragged labels"])
def test_25_no_message_holds_the_number_of_records(wrong, fit):
    said = set()
    for n in (7, 8):
        X, y = [[1.0, 2.0]] * n, [index % 2 for index in range(n)]
        if wrong == "ragged":
            X[-1] = [3.0]
        elif wrong == "no features":
            X = np.zeros((n, 0))
        else:
            y[-1] = [1, 0]
        model = DPLeastSquares(classes=[0, 1], random_state=0)
        if fit == "network":
            model = DPSGDClassifier(model="mlp", classes=[0, 1], noise_multiplier=1.0)
        elif fit == "temperature":
            model = TemperatureScaling(model.fit([[1.0, 2.0]] * 2, [0, 1]))
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            model.fit(X, y)
        said.add(str(caught.value))
    assert len(said) == 1


def test_25_notices_a_count_on_the_estimator(spy, make, one_less, plant):
    genuine = plant.genuine("solution of a linear fit", of=DPLeastSquares)

    def counting(self, rows, mechanism, shape):
        self.n_samples_seen_ = rows._features.shape[0]
        return genuine(self, rows, mechanism, shape)

    plant("solution of a linear fit", counting, of=DPLeastSquares)
    with pytest.raises(AssertionError):
        check_25(spy, make, one_less)


# 26 -- preprocessing was fitted on private data: bounds, scaler, principal components


def check_26(spy, make, data):
    """The longest record goes; nothing that remains may be scaled another way."""
    X, y = data
    X = X.copy()
    X[4] *= 100.0
    without = np.delete(X, 4, axis=0), np.delete(y, 4)
    for options in ({}, {"row_scaling": "clip", "clip_norm": 1.0}):
        one, _, calls, other_calls = replay(
            spy, lambda options=options: make(**options), (X, y), without
        )
        check_sensitivity(one.privacy_, calls, other_calls)
        assert "feature_mean" in {record.name for record in one.privacy_.releases}


def test_26_rows_are_scaled_by_public_constants_or_charged(spy, make, three_classes):
    check_26(spy, make, three_classes)


def test_26_notices_a_scaler_fitted_on_the_records(spy, make, three_classes, plant):
    genuine = plant.genuine("read of bounded rows")

    def scaled(self, start, stop):
        return genuine(self, start, stop) / np.std(self._features, axis=0)

    plant("read of bounded rows", scaled)
    with pytest.raises(AssertionError):
        check_26(spy, make, three_classes)


# 27 -- the guarantee held only if an optimizer converged


def check_27(spy, make, data):
    X, y = data
    for features in (X, np.zeros_like(X), 1e6 * X):  # hard, solved at once, separable
        spy.start()
        clf = make(DPAdamLinear, n_iter=5).fit(features, y)
        assert len(spy.of("gradient")) == clf.n_iter_ == 5


def test_27_the_number_of_noisy_steps_does_not_depend_on_the_data(
    spy, make, three_classes
):
    check_27(spy, make, three_classes)


def test_27_notices_an_early_stop(spy, make, three_classes, plant):
    """The plan is then not complete, and the fit gives no model."""

    def until_good_enough(what, n_steps):
        for step in range(n_steps):
            if step == 3:
                return
            yield step

    plant("steps of Adam", until_good_enough)
    with pytest.raises((AssertionError, PrivacyError)):
        check_27(spy, make, three_classes)
