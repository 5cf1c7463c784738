"""The nearest mean: what its one release holds, by how much it moves, what it says."""

import itertools
import math

import numpy as np
import pytest

from privfeat import DPNearestMean
from privfeat.audit import replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
ROWS = [*np.eye(3), *-np.eye(3), np.zeros(3), np.array([1e4, -1e4, 1e-4])]


def contrasts(rows, labels, n_classes):
    """Return the class sums less their mean, by a loop."""
    sums = np.zeros((n_classes, rows.shape[1]))
    for row, label in zip(rows, labels, strict=True):
        sums[label] += row
    return sums - sums.mean(axis=0)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_bound_holds_for_every_record_and_pair_and_is_attained(
    n_classes, adjacency, spy
):
    """Each record is added to the same others; the change is its contribution."""
    X, y = np.eye(3), np.arange(3) % n_classes
    clf = DPNearestMean(
        epsilon=2.0,
        classes=range(n_classes),
        adjacency=adjacency,
        center=False,
        fit_intercept=False,
        clip_norm=0.7,
    )

    def exact(X, y):
        spy.start()
        clf.fit(X, y)
        (call,) = spy.calls
        return call.exact

    without = exact(X, y)
    moved = [
        exact(np.vstack([X, row]), np.append(y, label)) - without
        for row in ROWS
        for label in range(min(n_classes, 3))
    ]
    if adjacency == "replace_one":
        moved = [one - two for one, two in itertools.combinations(moved, 2)]
    (release,) = clf.privacy_.releases
    factor = 2.0 if adjacency == "replace_one" else 1.0
    expected = factor * 0.7 * math.sqrt(1.0 - 1.0 / n_classes)
    assert release.l2_sensitivity == pytest.approx(expected, rel=1e-5)
    largest = max(map(np.linalg.norm, moved))
    assert (1.0 - 1e-5) * release.l2_sensitivity < largest <= release.l2_sensitivity


@pytest.mark.parametrize("n_classes", [2, 3])
def test_release_holds_the_contrasts(n_classes, three_classes, spy):
    X, y = three_classes
    X, y = X[y < n_classes], y[y < n_classes]
    clf = DPNearestMean(epsilon=2.0, classes=range(n_classes), fit_intercept=False)
    clf.set_params(center=False).fit(X, y)
    (call,) = spy.calls
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = contrasts(rows, y, n_classes)
    np.testing.assert_allclose(-call.exact, expected, atol=1e-4)


def test_predicts_the_most_similar_direction(three_classes):
    X, y = three_classes
    clf = DPNearestMean(epsilon=math.inf, fit_intercept=False).fit(X, y)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) - clf.center_
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    directions = contrasts(rows, y, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    scores = rows @ directions.T
    np.testing.assert_allclose(clf.decision_function(X), 10.0 * scores, atol=1e-3)
    np.testing.assert_array_equal(clf.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("clip_norm", [0.01, 100.0])
def test_scores_do_not_depend_on_the_unit_of_the_rows(clip_norm, three_classes):
    X, y = three_classes
    one, two = (
        DPNearestMean(random_state=0, classes=range(3), clip_norm=norm).fit(X, y)
        for norm in (1.0, clip_norm)
    )
    np.testing.assert_allclose(
        one.decision_function(X), two.decision_function(X), atol=1e-3
    )


def test_fit_refuses_several_labels_before_a_release(several_labels, spy):
    X, Y, _ = several_labels
    with pytest.raises(ValueError, match=r"^y must hold one label .* Use DPFC\.$"):
        DPNearestMean().fit(X, Y)
    assert not spy.calls
    with pytest.raises(ValueError, match="y must hold one label"):
        DPNearestMean(classes=range(3)).planned(4, multilabel=True)


def test_replay_finds_users_within_the_bound(users):
    X, y, groups = users
    clf = DPNearestMean(epsilon=1.0, classes=range(3), max_group_size=3)
    assert replay(clf, X, y, user=9, groups=groups).ok
