"""A public prior is read by class, stated, kept and compared."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import normalize

import privfeat
from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from privfeat.estimation.team import _described
from privfeat.linear.parameters.prior import as_array, read_prior

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
TAKE_A_PRIOR = [DPFC, DPAdamLinear, DPLeastSquares]
OPTIONS = {"classes": [0, 1, 2], "random_state": 0, "epsilon": 1.0}


@pytest.fixture
def head(three_classes):
    X, y = three_classes
    return LogisticRegression(C=10.0).fit(normalize(X), y)


def read(prior, classes, n_features=4, n_outputs=None, exclusive=True):
    return read_prior(
        prior,
        classes=np.asarray(classes),
        n_features=n_features,
        n_outputs=n_outputs or len(classes),
        exclusive=exclusive,
    )


def test_estimator_is_aligned_by_class(head):
    found, turned = read(head, [0, 1, 2]), read(head, [2, 0, 1])
    np.testing.assert_allclose(turned.coef, found.coef[[2, 0, 1]])
    np.testing.assert_allclose(turned.intercept, found.intercept[[2, 0, 1]])
    np.testing.assert_allclose(found.coef.sum(axis=0), 0.0, atol=1e-12)


def test_estimator_of_two_classes_has_one_score(two_classes):
    X, y = two_classes
    head = LogisticRegression().fit(X, y)
    one = read(head, [0, 1], n_outputs=1)
    np.testing.assert_allclose(one.coef, head.coef_)
    both, turned = read(head, [0, 1]), read(head, [1, 0])
    np.testing.assert_allclose(both.coef[1:] - both.coef[:1], head.coef_)
    np.testing.assert_allclose(turned.coef, both.coef[::-1])


def test_prior_scores_shifted_rows_as_the_estimator_scores_its_own(head, three_classes):
    """Up to one factor, for rows whose distance from the center is the typical one."""
    center = np.array([0.2, 0.1, -0.3, 0.0])
    found = read(head, [0, 1, 2])
    coef = found.of_rows(center, "unit")
    radius = np.sqrt(1.0 - center @ center)
    directions = normalize(np.random.default_rng(0).normal(size=(5, 4)))
    own = (center + radius * directions) @ found.coef.T + found.intercept
    seen = directions @ coef[:, :-1].T + coef[:, -1]
    np.testing.assert_allclose(radius * seen, own)


def test_column_of_intercepts_is_read():
    values = np.arange(12.0).reshape(3, 4) ** 2
    found = read(values, [0, 1, 2], n_features=3)
    np.testing.assert_allclose(found.intercept, values[:, 3] - values[:, 3].mean())


def test_rows_of_an_array_are_in_the_order_of_the_fitted_classes():
    names, X = ["c", "a", "b"], np.eye(3)
    known = {"classes": sorted(names), "prior": np.eye(3)}
    clf = DPFC(**known, center=False, epsilon=0.01, n_iter=1)
    clf.set_params(random_state=0).fit(X, names)
    assert clf.predict(X).tolist() == clf.classes_.tolist() == ["a", "b", "c"]


def test_without_one_class_in_common_scores_are_kept():
    values = np.ones((3, 4))
    np.testing.assert_array_equal(read(values, [0, 1, 2], exclusive=False).coef, values)


@pytest.mark.parametrize(
    ("prior", "kind", "words"),
    [
        (np.zeros((3, 3)), ValueError, r"shape \(3, 4\), got \(3, 3\)"),
        (np.ones((3, 4)), ValueError, "must score some rows differently"),
        (np.full((3, 4), np.nan), ValueError, "must be finite"),
        (LogisticRegression(), ValueError, "FrozenEstimator"),
        ("names", TypeError, "made of numbers"),
        (LinearRegression().fit(np.eye(4), np.eye(4)), TypeError, "a classifier"),
        (
            LogisticRegression().fit(np.eye(4), [0, 0, 1, 1]),
            ValueError,
            "all 3 classes, and knows 2",
        ),
    ],
)
def test_prior_that_does_not_fit_is_refused_before_a_fit(prior, kind, words):
    with pytest.raises(kind, match=words):
        DPFC(prior=prior, classes=[0, 1, 2]).planned(4)


def test_class_grams_take_no_prior():
    estimator = DPLeastSquares(prior=np.eye(3, 4), class_gram=True, classes=range(3))
    with pytest.raises(ValueError, match="class_gram must be False with a prior"):
        estimator.planned(4)


@pytest.mark.slow
@pytest.mark.parametrize("cls", TAKE_A_PRIOR)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_prior_decides_where_noise_would(cls, loss, three_classes):
    if cls is DPLeastSquares and loss != "squared":
        pytest.skip("it has no other loss")
    X, y = three_classes
    options = {"epsilon": 1e-3, "center": False, "classes": [0, 1, 2]}
    options |= {} if cls is DPLeastSquares else {"loss": loss}
    found = [
        np.mean(
            [
                cls(prior=prior, random_state=seed, **options).fit(X, y).score(X, y)
                for seed in range(4)
            ]
        )
        for prior in (np.eye(3, 4), None)
    ]
    assert found[0] > 0.7
    assert found[0] > found[1] + 0.2


@pytest.mark.parametrize("cls", TAKE_A_PRIOR)
def test_prior_costs_nothing_and_is_stated(cls, three_classes):
    with_prior, without = (
        cls(prior=prior, **OPTIONS).fit(*three_classes).privacy_
        for prior in (np.eye(3, 4), None)
    )
    assert with_prior.releases == without.releases
    assert "that the prior was made without the records" in with_prior.public
    assert "that the prior was made without the records" not in without.public


@pytest.mark.parametrize("cls", TAKE_A_PRIOR)
def test_prior_of_zero_weight_changes_nothing_but_by_rounding(cls, three_classes):
    """Of no noise and enough records the fit without a prior is found again."""
    X, y = np.repeat(three_classes[0], 200, axis=0), np.repeat(three_classes[1], 200)
    options = OPTIONS | {"epsilon": 100.0}
    found = cls(prior=-np.eye(3, 4), **options).fit(X, y)
    assert found.score(X, y) >= cls(**options).fit(X, y).score(X, y) - 0.01


@pytest.mark.slow
def test_two_classes_take_a_prior_of_each(two_classes):
    X, y = two_classes
    for options in ({}, {"loss": "sigmoid"}):
        fitted = [
            DPFC(
                prior=np.eye(2, 4),
                epsilon=1e-3,
                center=False,
                random_state=seed,
                classes=[0, 1],
                **options,
            ).fit(X, y)
            for seed in range(4)
        ]
        assert fitted[0].coef_.shape == (1, 4)
        assert np.mean([one.score(X, y) for one in fitted]) > 0.7


def test_several_labels_take_a_prior(several_labels):
    X, Y, _ = several_labels
    fitted = DPFC(prior=np.eye(3, 4), random_state=0).fit(X, Y)
    assert fitted.coef_.shape == (3, 4)


def test_saved_estimator_becomes_an_array(tmp_path, head, three_classes):
    fitted = DPFC(prior=FrozenEstimator(head), **OPTIONS).fit(*three_classes)
    privfeat.save(fitted, tmp_path / "model")
    loaded = privfeat.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.prior, as_array(head, fitted))
    assert loaded.prior.shape == (3, 5)
    loaded.set_params(random_state=0).fit(*three_classes)
    np.testing.assert_allclose(loaded.coef_, fitted.coef_)


def test_clones_keep_a_frozen_prior(head, three_classes):
    estimator = DPFC(prior=FrozenEstimator(head), **OPTIONS)
    first, second = (e.fit(*three_classes) for e in (estimator, clone(estimator)))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    with pytest.raises(ValueError, match="FrozenEstimator"):
        clone(DPFC(prior=head, **OPTIONS)).fit(*three_classes)


def test_processes_compare_what_the_prior_says(head):
    estimator = DPFC(prior=head)
    one, other = (
        _described(estimator, {"prior": read(prior, [0, 1, 2]).parts})
        for prior in (head, np.eye(3, 4))
    )
    assert one != other
    assert "prior__" not in one


def test_least_squares_refuses_a_prior_beside_class_weights():
    fit = DPLeastSquares(prior=np.eye(3, 4), class_weight="balanced", **OPTIONS)
    with pytest.raises(ValueError, match="class_weight must be None with a prior"):
        fit.fit(np.ones((6, 4)), [0, 1, 2] * 2)


@pytest.mark.parametrize("cls", TAKE_A_PRIOR)
@pytest.mark.parametrize("scale", [2.0**-700, 2.0**700])
def test_the_scale_of_a_prior_has_no_meaning(cls, scale, three_classes):
    """Squares of small or large ones ended a fit after its charge."""
    prior = np.random.default_rng(0).normal(size=(3, 4))
    expected = cls(prior=prior, **OPTIONS).fit(*three_classes).coef_
    found = cls(prior=scale * prior, **OPTIONS).fit(*three_classes).coef_
    np.testing.assert_array_equal(found, expected)
