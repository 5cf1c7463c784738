import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError

from privfeat import DPLeastSquares, PrivacyLedger
from privfeat.audit.recorder import recording
from privfeat.recalibration import ConformalClassifier

HOLDS_ALL = "sets must leave out classes to say anything"
pytestmark = pytest.mark.filterwarnings(f"ignore:{HOLDS_ALL}")


class Softmax(ClassifierMixin, BaseEstimator):
    """Predict the softmax of the rows."""

    classes_ = np.arange(4)

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return softmax(np.asarray(X), axis=1)

    def predict(self, X):
        return np.argmax(X, axis=1)


def draw(n_rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_rows)
    return 2.0 * np.eye(4)[y] + rng.normal(size=(n_rows, 4)), y


def covered(model, X, y):
    return model.predict_set(X)[np.arange(len(y)), y]


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_without_noise_the_threshold_is_the_quantile_of_the_scores(alpha):
    """The next edge of the grid above it, but for the noise's margin of zero."""
    X, y = draw(500, 0)
    model = ConformalClassifier(Softmax(), alpha=alpha, epsilon=math.inf).fit(X, y)
    scores = np.sort(1.0 - softmax(X, axis=1)[np.arange(500), y])
    quantile = scores[math.ceil((1 - alpha) * 501) - 1]
    assert quantile <= model.threshold_ <= quantile + 0.01


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_sets_cover_what_is_asked(adjacency):
    """The noise was drawn so that it fails at most once in a million."""
    X_new, y_new = draw(20_000, 1)
    X, y = draw(3000, 2)
    model = ConformalClassifier(
        Softmax(),
        alpha=0.2,
        failure_prob=Fraction(1, 10**6),
        epsilon=2.0,
        adjacency=adjacency,
    ).fit(X, y)
    rate = covered(model, X_new, y_new).mean()
    # what 3,000 records can miss by: four standard errors
    assert 0.8 - 4 * math.sqrt(0.16 / 3000) < rate < 0.95
    sizes = model.predict_set(X_new).sum(axis=1)
    assert 0.8 < sizes.mean() < 2.0
    assert np.array_equal(model.predict(X_new), np.argmax(X_new, axis=1))


@pytest.mark.slow
@pytest.mark.statistical
def test_coverage_over_many_calibrations_is_at_least_what_is_asked():
    """200 calibrations on 300 records; mean coverage has a standard error of 0.0015.

    Fails by chance less than once in 1e9: six standard errors below.
    """
    X_new, y_new = draw(5_000, 1)
    rates = []
    for seed in range(200):
        model = ConformalClassifier(Softmax(), alpha=0.2, epsilon=4.0, failure_prob=0.5)
        model.fit(*draw(300, 10 + seed))
        rates.append(covered(model, X_new, y_new).mean())
    assert np.mean(rates) > 0.8 - 6 * np.std(rates) / math.sqrt(200)


def test_too_few_records_give_sets_of_every_class():
    model = ConformalClassifier(Softmax(), epsilon=0.1)
    with pytest.warns(UserWarning, match=HOLDS_ALL):
        model.fit(*draw(20, 3))
    assert model.threshold_ == math.inf
    assert model.predict_set(draw(5, 4)[0]).all()


def test_a_warning_after_the_charge_does_not_lose_the_sets():
    """Where warnings are errors, the budget was spent and nothing came of it."""
    model = ConformalClassifier(Softmax(), epsilon=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error")
        model.fit(*draw(20, 3))
    assert model.threshold_ == math.inf
    assert any(HOLDS_ALL in str(each.message) for each in told)


def test_sets_that_say_something_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConformalClassifier(Softmax(), epsilon=4.0).fit(*draw(2000, 2))
    assert model.threshold_ < 1.0


def test_fewer_records_or_less_budget_make_larger_sets():
    X_new, _ = draw(2000, 1)

    def size(n_rows, epsilon):
        model = ConformalClassifier(Softmax(), epsilon=epsilon).fit(*draw(n_rows, 2))
        return model.predict_set(X_new).sum()

    assert size(4000, 4.0) < size(4000, 0.2)
    assert size(4000, 1.0) < size(200, 1.0)


def test_a_smaller_probability_of_failure_makes_larger_sets():
    X, y = draw(2000, 2)
    thresholds = []
    for probability in (0.5, 1e-9):
        with pytest.warns(match="random_state"):
            model = ConformalClassifier(
                Softmax(), failure_prob=probability, random_state=1
            ).fit(X, y)
        thresholds.append(model.threshold_)
    assert thresholds[0] < thresholds[1]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_record_moves_the_counts_by_at_most_their_sensitivity(adjacency):
    X, y = draw(30, 5)
    other, labels = X.copy(), y.copy()
    other[7], labels[7] = [50.0, 0, 0, 0], 1
    X[7], y[7] = [50.0, 0, 0, 0], 0
    sets = [(X, y), (other, labels)]
    if adjacency == "add_remove":
        sets[1] = (np.delete(X, 7, axis=0), np.delete(y, 7))
    found = []
    for rows, codes in sets:
        with recording() as recorder:
            model = ConformalClassifier(Softmax(), adjacency=adjacency)
            model.fit(rows, codes)
        found.append(recorder.calls[0].exact)
    (release,) = model.privacy_.releases
    moved = np.linalg.norm(found[0] - found[1])
    assert moved <= release.l2_sensitivity
    assert moved == pytest.approx(release.l2_sensitivity, rel=1e-5)


def test_one_record_of_a_user_counts():
    X, y = draw(300, 5)
    users = np.maximum(np.arange(300) - 199, 0)
    with recording() as recorder:
        model = ConformalClassifier(Softmax()).fit(X, y, groups=users)
    assert recorder.calls[0].exact[:4].sum() == 101
    assert model.privacy_.unit == "user"
    assert model.privacy_.releases[0].l2_sensitivity == pytest.approx(2.0, rel=1e-5)


def test_ledger_is_charged_and_an_earlier_threshold_forgotten(tmp_path, plant):
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=3.0, delta=1e-5)
    model = ConformalClassifier(Softmax(), ledger=ledger).fit(*draw(100, 6))
    (charge,) = ledger.history
    assert charge.estimator == "ConformalClassifier"
    assert charge.statement == model.privacy_

    def fails(key, shape, stddev):
        raise MemoryError

    with plant.context() as patch:
        patch("Gaussian noise", fails)
        with pytest.raises(MemoryError):
            model.fit(*draw(100, 6))
    assert len(ledger.history) == 2
    assert not hasattr(model, "threshold_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 0.0}, "alpha must be"),
        ({"alpha": math.nan}, "alpha must be"),
        ({"failure_prob": 1.0}, "failure_prob must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"adjacency": "swap"}, "adjacency must be"),
        ({"ledger": "path"}, "ledger must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    model = ConformalClassifier(Softmax(), **params)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(*draw(5, 8))
    assert not hasattr(model, "privacy_")


def test_bad_records_are_refused():
    X, y = draw(5, 9)
    for rows, labels in [(X, y[:4]), (X[:0], y[:0]), (X, y + 9), (X, y[:, None])]:
        with pytest.raises(ValueError, match=r"X and y|y must hold"):
            ConformalClassifier(Softmax()).fit(rows, labels)
    with pytest.raises(ValueError, match="finite"):
        ConformalClassifier(Softmax()).fit(X * np.nan, y)
    several = DPLeastSquares(epsilon=1.0, classes=range(2))
    several.fit(X, np.c_[y > 1, y > 2] * 1)
    with pytest.raises(ValueError, match="one label a record"):
        ConformalClassifier(several).fit(X, y)


def test_conformal_is_a_scikit_learn_estimator():
    again = clone(ConformalClassifier(Softmax(), alpha=0.3))
    assert again.get_params(deep=False)["alpha"] == 0.3
    with pytest.raises(NotFittedError):
        again.predict_set(np.zeros((1, 4)))
