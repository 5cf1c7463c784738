"""What other threads do to an estimator while it is fitted."""

import pickle
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController, threadpool_limits

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPRandomizedSearch,
    TemperatureScaling,
)
from privfeat.core.noise.observation import observe
from privfeat.estimation.fitting import fitted_apart
from privfeat.export.parts import predictor_of

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
KEY = 3


@pytest.fixture
def records():
    rng = np.random.default_rng(KEY)
    return rng.normal(size=(60, 4)), np.arange(60) % 3


def test_parameters_that_change_while_a_fit_runs_are_of_the_next(records, plant):
    clip_norms, exact_gradient = [], plant.genuine("exact gradient")

    def changing(*args, clip_norm, **rest):
        clip_norms.append(clip_norm)
        clf.set_params(gradient_clip_norm=1.0, epsilon=9.0)  # as another thread may
        return exact_gradient(*args, clip_norm=clip_norm, **rest)

    plant("exact gradient", changing)
    clf = DPAdamLinear(
        gradient_clip_norm=0.01, n_iter=3, classes=range(3), random_state=KEY
    )
    clf.fit(*records)
    assert set(clip_norms) == {0.01}
    assert clf.privacy_.releases[-1].l2_sensitivity == pytest.approx(0.01)
    assert (clf.gradient_clip_norm, clf.epsilon) == (1.0, 9.0)


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_stands_beside_its_own_statement(records, plant, fails):
    """The dearer of two fits of one object starts first and ends in the middle."""
    clf = DPLeastSquares(epsilon=8.0, classes=range(3), random_state=KEY)
    solve = plant.genuine("solution of a linear fit", of=DPLeastSquares)
    first, second = threading.Event(), threading.Event()

    def solved(self, rows, mechanism, shape):
        coef = solve(self, rows, mechanism, shape)
        if self.epsilon == 8.0:
            first.set()
            assert second.wait(60)
        else:
            second.set()
            thread.join(60)
            if fails:
                raise MemoryError
        return coef

    plant("solution of a linear fit", solved, of=DPLeastSquares)
    thread = threading.Thread(target=clf.fit, args=records)
    thread.start()
    assert first.wait(60)
    clf.set_params(epsilon=0.5)
    if fails:
        with pytest.raises(MemoryError):
            clf.fit(*records)
    else:
        clf.fit(*records)
    assert clf.privacy_.epsilon == 0.5
    assert hasattr(clf, "coef_") == (not fails)


def test_a_fit_that_fails_leaves_its_statement_and_nothing_of_an_earlier_one(
    records, plant
):
    clf = DPFC(epsilon=2.0, classes=range(3), random_state=KEY).fit(*records)
    plant("solution of a linear fit", lambda *_: np.full((3, 5), np.inf), of=DPFC)
    with pytest.raises(FloatingPointError):
        clf.set_params(epsilon=1.0).fit(*records)
    assert clf.privacy_.epsilon == 1.0
    assert not hasattr(clf, "coef_")


def test_no_release_of_an_earlier_fit_stays_beside_the_next_statement(records, plant):
    clf = DPLeastSquares(epsilon=9.0, classes=range(3), random_state=KEY).fit(*records)

    def fail(*_):
        raise MemoryError

    plant("Gaussian noise", fail)
    with pytest.raises(MemoryError):
        clf.set_params(epsilon=1.0).fit(*records)
    fitted = {name for name in vars(clf) if name.endswith("_")}
    assert fitted == {"privacy_", "n_features_in_"}


def test_a_fit_that_fails_before_its_first_draw_leaves_the_model_as_it_was(
    records, plant
):
    clf = DPLeastSquares(epsilon=9.0, classes=range(3), random_state=KEY).fit(*records)
    before = dict(vars(clf))

    def fail(*_):
        raise MemoryError

    plant("sum of the mean", fail)
    with pytest.raises(MemoryError):
        clf.fit(*records)
    assert vars(clf) == before


def test_every_fit_is_apart():
    from privfeat import (
        DPRandomizedSearch,
        DPSGDClassifier,
    )

    wrapped = fitted_apart(lambda self: self).__code__
    for kind in (DPFC, DPSGDClassifier, DPRandomizedSearch, TemperatureScaling):
        assert kind.fit.__code__ is wrapped


def test_a_fit_that_is_refused_leaves_the_model_as_it_was(records):
    X, y = records
    clf = DPLeastSquares(classes=range(3), random_state=KEY).fit(X, y)
    before = dict(vars(clf))
    with pytest.raises(ValueError, match="y must hold labels of classes"):
        clf.fit(pd.DataFrame(X[:, :3], columns=["a", "b", "c"]), y + 1)
    assert vars(clf) == before
    assert clf.predict(X).shape == y.shape


@pytest.mark.parametrize("word", ["groups", "sample_weight", "no_such"])
def test_fit_names_the_estimator_and_the_word_that_it_does_not_take(records, word):
    clf = DPLeastSquares(classes=range(3))
    wrong = {"groups": DPRandomizedSearch(clf, {"ridge": [1.0]})}.get(word, clf)
    with pytest.raises(TypeError, match=rf"{type(wrong).__name__}\.fit has no {word}"):
        wrong.fit(*records, **{word: np.arange(60)})


def test_a_fit_keeps_nothing_that_its_owner_takes_out(records):
    """A seed that is set to None before a pickle leaves must be gone."""
    prior = FrozenEstimator(LogisticRegression().fit(*records))
    seed = np.random.RandomState(0)
    clf = DPLeastSquares(classes=[0, 1, 2], random_state=seed, prior=prior)
    clf.fit(*records)
    for word, taken in ((b"MT19937", "random_state"), (b"LogisticR", "prior")):
        assert word in pickle.dumps(clf)
        assert word not in pickle.dumps(clf.set_params(**{taken: None}))


def test_probabilities_and_exports_are_of_the_parameters_of_the_fit(records):
    clf = DPAdamLinear(epsilon=9.0, classes=range(3), random_state=KEY, n_iter=2)
    found = clf.fit(*records).predict_proba(records[0])
    exported = predictor_of(clf)
    clf.set_params(loss="squared", row_scaling="clip")
    np.testing.assert_array_equal(clf.predict_proba(records[0]), found)
    assert predictor_of(clf).row_scaling == exported.row_scaling != "clip"


def test_labels_are_those_of_the_fit(records):
    X, y = records
    Y = np.stack([y == 0, y != 0], axis=1).astype(int)
    clf = DPLeastSquares(epsilon=9.0, class_gram=True, alpha=0.1, random_state=KEY)
    found = clf.fit(X, Y).predict(X)
    np.testing.assert_array_equal(clf.set_params(class_gram=False).predict(X), found)


def test_the_steps_of_dpfc_are_multiplied_by_one_thread(records):
    threads = []

    class Gradient(np.ndarray):
        def __matmul__(self, other):
            blas = ThreadpoolController().select(user_api="blas")
            threads.extend(library.num_threads for library in blas.lib_controllers)
            return np.asarray(self) @ other

    def watched(exact, release):
        if release.name != "gradient":
            return release
        return replace(release, value=release.value.view(Gradient))

    clf = DPFC(classes=range(3), random_state=KEY, n_iter=2)
    expected = clf.fit(*records).coef_
    with threadpool_limits(2, "blas"), observe(watched):
        found = clf.fit(*records).coef_
    np.testing.assert_array_equal(found, expected)
    assert set(threads) == {1}


@pytest.mark.parametrize("cls", [DPFC, DPAdamLinear])
@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({}, 0.75),
        ({"max_group_size": 1}, 0.75),
        ({"max_group_size": 2}, 1.0),
        ({"row_scaling": "clip"}, 1.0),
        ({"row_scaling": "clip", "gradient_clip_norm": 0.5}, 0.5),
    ],
)
def test_the_bound_on_gradients_goes_by_the_kind_of_rows(cls, options, bound):
    clf = cls(classes=range(3), **options)
    planned = {one.query.name: one.query for one in clf.planned(4).releases}
    assert planned["gradient"].l2_sensitivity == pytest.approx(bound, rel=1e-6)
