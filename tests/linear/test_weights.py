"""Classes of different weights: what a fit computes, releases, states and refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, load, save
from privfeat.core.noise.release import Release
from privfeat.linear.parameters.weights import balanced_weights

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
WEIGHING = [DPFC, DPAdamLinear, DPLeastSquares]
FREE = {"epsilon": math.inf, "classes": range(3), "center": False}


@pytest.fixture(params=WEIGHING, ids=lambda cls: cls.__name__)
def weighing(request):
    return request.param


def own(cls):
    """Parameters whose units are those of a record of the largest weight."""
    if cls is DPAdamLinear:  # its steps have the same size whatever the gradient is
        return {"optimizer": "sgd", "learning_rate": 0.02, "n_iter": 5}
    return {"ridge": 1.0}


def test_a_weight_of_two_is_a_record_twice(weighing, three_classes):
    """Without noise; weights are divided by the largest one, here 2."""
    X, y = three_classes
    twice = np.repeat(np.arange(len(y)), np.where(y == 1, 2, 1))
    options = FREE | own(weighing)
    found = weighing(**options, class_weight={1: 2.0}).fit(X, y)
    for name, factor in (("ridge", 2.0), ("learning_rate", 0.5)):
        if name in options:
            options[name] *= factor
    expected = weighing(**options).fit(X[twice], y[twice])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-6)
    np.testing.assert_array_equal(found.class_weight_, [0.5, 1.0, 0.5])


def test_only_ratios_matter(weighing, three_classes):
    options = {"epsilon": 1.0, "classes": range(3), "random_state": 0}
    fits = [
        weighing(**options, class_weight=weights).fit(*three_classes)
        for weights in ({0: 1, 1: 5, 2: 2}, [10.0, 50.0, 20.0], np.array([0.2, 1, 0.4]))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].coef_, other.coef_)
    plain = weighing(**options).fit(*three_classes)
    assert fits[0].privacy_.releases == plain.privacy_.releases
    assert not hasattr(plain, "class_weight_")


def test_weights_with_names_are_not_taken_by_their_place(weighing, three_classes):
    """Sorted by weight, say, they would be those of other classes."""
    series = pd.Series([1.0, 5.0, 2.0], index=[1, 0, 2])
    clf = weighing(classes=range(3), class_weight=series)
    with pytest.raises(TypeError, match=r"got Series\. Pass class_weight\.to_dict\(\)"):
        clf.fit(*three_classes)
    clf.set_params(class_weight=series.to_dict()).fit(*three_classes)
    np.testing.assert_array_equal(clf.class_weight_, [1.0, 0.2, 0.4])
    with pytest.raises(ValueError, match="keys of the type of the labels"):
        clf.set_params(class_weight={"0": 5.0}).fit(*three_classes)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_balanced_states_the_counts_and_keeps_other_sensitivities(
    weighing, adjacency, three_classes
):
    options = {"epsilon": 1.0, "classes": range(3), "adjacency": adjacency}
    clf = weighing(**options, class_weight="balanced")
    planned = clf.planned(4)
    clf.fit(*three_classes)
    assert clf.privacy_.releases == planned.records
    bounds = {each.name: each.l2_sensitivity for each in clf.privacy_.releases}
    expected = 2.0**0.5 if adjacency == "replace_one" else 1.0
    assert bounds.pop("class_counts") == pytest.approx(expected, rel=2e-6)
    plain = weighing(**options).fit(*three_classes)
    expected = {each.name: each.l2_sensitivity for each in plain.privacy_.releases}
    assert bounds == pytest.approx(expected)
    assert clf.class_weight_.max() == 1.0


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_balanced_is_one_over_the_counts(loss, two_classes):
    """Without noise; also where the first of two classes has label -1."""
    X, y = two_classes
    y = np.append(y, np.zeros(12, int))
    X = np.append(X, np.repeat(X[:3], 4, axis=0), axis=0)
    options = {"epsilon": math.inf, "classes": [0, 1], "loss": loss}
    clf = DPFC(**options, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(clf.class_weight_, [0.5, 1.0])
    given = DPFC(**options, class_weight={1: 2.0}).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, given.coef_)
    plain = DPFC(**options).fit(X, y)
    assert clf.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()


def test_an_empty_class_weighs_as_noise_could_hide(weighing, three_classes):
    X, y = three_classes
    clf = weighing(
        epsilon=1.0, classes=range(9), class_weight="balanced", random_state=0
    ).fit(X, y)
    assert np.all((clf.class_weight_ > 0.0) & (clf.class_weight_ <= 1.0))
    counts = Release("class_counts", np.array([-40.0, 3.0, 1000.0]), 10.0, False)
    np.testing.assert_allclose(balanced_weights(counts, 5.0), [1.0, 1.0, 0.02])
    np.testing.assert_allclose(balanced_weights(counts, 50.0), [1.0, 1.0, 0.05])


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("cls", [DPAdamLinear, DPLeastSquares])
@pytest.mark.parametrize("class_weight", ["balanced", [1, 2, 7]])
def test_sparse_rows_are_weighed_alike(cls, class_weight, epsilon, three_classes):
    X, y = three_classes
    options = {"classes": range(3), "center": False, "random_state": 0}
    options["epsilon"] = epsilon
    dense = cls(**options, class_weight=class_weight).fit(X, y)
    sparse = clone(dense).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-3, atol=1e-4)


def test_a_fit_in_whole_numbers_weighs_as_well(weighing, three_classes):
    clf = weighing(
        epsilon=1.0, classes=range(3), class_weight="balanced", arithmetic="exact"
    ).fit(*three_classes)
    assert np.all(np.isfinite(clf.coef_))


def test_records_of_users_beyond_the_limit_do_not_count(weighing, users, spy):
    X, y, groups = users
    clf = weighing(
        epsilon=1.0, classes=range(3), class_weight="balanced", max_group_size=2
    ).fit(X, y, groups)
    (counts,) = spy.of("class_counts")
    assert (
        counts.exact.sum()
        == np.minimum(np.unique(groups, return_counts=True)[1], 2).sum()
    )
    bounds = {each.name: each.l2_sensitivity for each in clf.privacy_.releases}
    assert bounds["class_counts"] == pytest.approx(2.0, rel=2e-6)
    assert any(fact.endswith("but to class_counts") for fact in clf.privacy_.public)


@pytest.mark.parametrize("class_weight", [{0: 1, 2: 3.5}, np.array([1.0, 2, 3])])
def test_weights_are_saved(class_weight, three_classes, tmp_path):
    clf = DPFC(classes=range(3), class_weight=class_weight).fit(*three_classes)
    save(clf, tmp_path / "model")
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.class_weight_, clf.class_weight_)
    np.testing.assert_equal(found.class_weight, class_weight)


def test_names_of_classes_are_keys(three_classes):
    X, y = three_classes
    names = np.array(["a", "b", "c"])
    options = {"epsilon": math.inf, "classes": list(names)}
    clf = DPFC(**options, class_weight={"c": 4.0}).fit(X, names[y])
    np.testing.assert_array_equal(clf.class_weight_, [0.25, 0.25, 1.0])


def test_several_labels_a_record_are_refused(weighing, several_labels):
    X, Y, _ = several_labels
    with pytest.raises(ValueError, match="class_weight must be None for an indicator"):
        weighing(class_weight="balanced").fit(X, Y)


def test_a_later_fit_without_weights_has_none(three_classes):
    clf = DPFC(classes=range(3), class_weight="balanced").fit(*three_classes)
    clf.set_params(class_weight=None).fit(*three_classes)
    assert not hasattr(clf, "class_weight_")


def rare_class(n_records, share=0.01):
    rng = np.random.default_rng(0)
    y = (np.arange(n_records) < share * n_records).astype(int)
    X = 1.0 + rng.normal(size=(n_records, 16))
    X[:, 0] += 4.0 * y
    return X, y


@pytest.mark.parametrize("center", [False, np.full(16, 0.2)])
def test_adam_counts_records_where_no_mean_is_released(center, spy):
    """A second gradient tells their number; the key is fixed."""
    X, y = rare_class(5000)
    clf = DPAdamLinear(epsilon=8, classes=[0, 1], center=center, random_state=0)
    clf.fit(X, y)
    assert 0.003 < clf.predict_proba(X)[:, 1].mean() < 0.06
    assert [release.name for release in clf.privacy_.releases] == ["gradient"]
    assert len(spy.of("gradient")) == clf.n_iter_ == 50


@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_adam_knows_how_rare_a_class_is(loss):
    """It said 0.27 on average where 0.01 is right; the key is fixed."""
    X, y = rare_class(5000)
    clf = DPAdamLinear(epsilon=8, classes=[0, 1], loss=loss, random_state=0).fit(X, y)
    assert 0.003 < clf.predict_proba(X)[:, 1].mean() < 0.06


def test_adam_takes_an_intercept_as_it_is_given(three_classes, spy):
    """The first gradient moves nothing but by a step then."""
    options = {"classes": range(3), "random_state": 0, "learning_rate": 1e-12}
    X, y = three_classes
    y = np.where(y > 0, 2, 0)
    given = DPAdamLinear(**options, epsilon=math.inf, intercept_init=0.5).fit(X, y)
    np.testing.assert_allclose(given.intercept_, 0.5, atol=1e-9)
    found = DPAdamLinear(**options, epsilon=math.inf).fit(X, y)
    assert np.ptp(found.intercept_) > 0.5
    counted = DPAdamLinear(**options, epsilon=math.inf, center=False).fit(X, y)
    ratio = np.exp(counted.intercept_[2] - counted.intercept_[0])
    assert ratio == pytest.approx(np.sum(y == 2) / np.sum(y == 0), rel=1e-4)
    few = DPAdamLinear(**options, epsilon=math.inf, center=False, n_iter=9).fit(X, y)
    np.testing.assert_allclose(few.intercept_, 0.0, atol=1e-9)
