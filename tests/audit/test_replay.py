import itertools
from dataclasses import replace as changed
from types import SimpleNamespace

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
)
from privfeat.audit import recording, replay, replay_neighbours
from privfeat.audit.copies import changed_attributes
from privfeat.audit.scores import columns_of
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError
from tests.audit.faults import drop_clip


@pytest.fixture
def few():
    rng = np.random.default_rng(1)
    return rng.normal(size=(30, 4)), np.arange(30) % 3


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cls", [DPLeastSquares, DPFC])
def test_replay_finds_no_fault_in_an_estimator(cls, adjacency, few):
    clf = cls(epsilon=1.0, classes=range(3), adjacency=adjacency)
    result = replay(clf, *few, record=4)
    assert result.ok
    assert len(result.movements) == len({move.name for move in result.movements}) > 1
    assert result.movements[0].name == "feature_mean"
    assert all(0.0 <= move.ratio <= 1.0 for move in result.movements)
    assert max(move.ratio for move in result.movements) > 0.8
    assert "ratio" in str(result)
    assert "TOO FAR" not in str(result)
    assert not hasattr(clf, "coef_")


EXTREMES = {
    "long": [1e9, 0.0, 0.0, 0.0],
    "huge": [-1e300, 1e300, 1e-300, 5e-324],
    "zero": [0.0, 0.0, 0.0, 0.0],
    "typical": [0.3, -1.0, 0.2, 0.5],
}


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "cls",
    [
        DPFC,
        DPAdamLinear,
        DPNearestMean,
        DPNewton,
        DPLeastSquares,
        DPLeastSquaresRegressor,
    ],
)
def test_default_fits_on_extreme_neighbours_move_as_declared(
    cls, adjacency, few, plant
):
    """Under replace-one against the negative row, of the same label and of another.

    The first sum must move by most of what is declared. Later sums move by what the
    noise of the mean leaves to them, hence the seed.
    """
    plant("seed of a replay", lambda _: 0)
    public = {"classes": range(3)}
    if cls is DPLeastSquaresRegressor:
        public = {"target_bounds": (0.0, 2.0)}
    X, y = few
    reached = []
    for row, label in itertools.product(EXTREMES.values(), (2, 0)):
        clf = cls(epsilon=1.0, adjacency=adjacency, **public)
        data, replacement = (np.vstack([X, row]), np.append(y, label)), -np.array(row)
        result = replay(clf, *data, record=30, replacement=(replacement, 2))
        assert result.ok, str(result)
        reached.append(result.movements[0].ratio)
    assert max(reached) > 0.9


def test_replay_takes_a_replacement(few):
    clf = DPLeastSquares(epsilon=1.0, classes=range(3), adjacency="replace_one")
    X, y = few
    same = replay(clf, X, y, record=4, replacement=(X[4], y[4]))
    assert {move.observed for move in same.movements} == {0.0}
    other = replay(clf, X, y, record=4, replacement=(-X[4], (y[4] + 1) % 3))
    assert other.ok
    assert max(move.observed for move in other.movements) > 1.0


def test_replay_takes_a_user(few):
    users = np.arange(30) // 5
    clf = DPLeastSquares(epsilon=1.0, classes=range(3), max_group_size=3)
    result = replay(clf, *few, user=2, groups=users)
    assert result.ok
    # as much as one record may, and no more
    assert 0.999 < max(move.observed for move in result.movements) <= 1.0
    result = replay(clf.set_params(user_bound="count"), *few, user=2, groups=users)
    assert result.ok
    assert max(move.observed for move in result.movements) > 1.0


def test_replay_takes_a_regressor(few):
    X, y = few
    model = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(0.0, 2.0))
    assert replay(model, X, y, record=0).ok


@pytest.mark.slow
def test_replay_keeps_the_coins_of_sampled_records(one_step, clusters):
    clf = one_step(
        epsilon=None,
        noise_multiplier=1.0,
        sampling_prob=0.5,
        accounting="pld",
        n_iter=3,
    )
    assert all(replay(clf, *clusters, record=i).ok for i in (0, 50, 99))


def test_replay_finds_a_missing_clip(few, plant):
    """Always: the row moves the sums by its norm."""
    drop_clip(plant)
    X, y = few
    clf = DPLeastSquares(
        epsilon=1.0,
        classes=range(3),
        center=False,
        fit_intercept=False,
        row_scaling="clip",
    )
    result = replay(clf, 10.0 * X, y, record=4)
    assert not result.ok
    assert "TOO FAR" in str(result)


def test_replay_finds_a_mean_instead_of_a_sum(few, plant):
    genuine = plant.genuine("exact Gram matrix")

    def mean_gram(rows, **options):
        n_samples = rows._features.shape[0]
        return ExactSum(genuine(rows, **options).value * 1000.0 / n_samples)

    plant("exact Gram matrix", mean_gram)
    clf = DPLeastSquares(epsilon=1.0, classes=range(3))
    found = {move.name: move.ok for move in replay(clf, *few, record=4).movements}
    assert found == {"feature_mean": True, "gram": False, "class_sums": True}


def test_replay_finds_state_that_was_not_released(few, plant):
    genuine = plant.genuine("problem of a linear fit", of=DPLeastSquares)

    def leak(self, y, n_features):
        problem = genuine(self, y, n_features)
        return changed(problem, fitted=problem.fitted | {"leak_": len(y)})

    plant("problem of a linear fit", leak, of=DPLeastSquares)
    result = replay(DPLeastSquares(epsilon=1.0, classes=range(3)), *few, record=4)
    assert result.changed == ("leak_",)
    assert not result.ok


def test_replay_finds_classes_read_from_the_labels(few):
    X, y = few
    y[7] = 9
    assert not replay(DPLeastSquares(epsilon=1.0), X, y, record=7).ok


@pytest.mark.parametrize(
    "chosen",
    [{}, {"record": 0, "user": 1}, {"record": 30}, {"record": -1}, {"user": 1}],
)
def test_replay_refuses_an_unclear_choice(chosen, few):
    with pytest.raises(ValueError, match="must be"):
        replay(DPLeastSquares(epsilon=1.0), *few, **chosen)


def test_replay_refuses_a_fit_that_releases_nothing(few):
    class Silent(DPLeastSquares):
        def fit(self, X, y):
            return self

    with pytest.raises(PrivacyError, match="must release"):
        replay_neighbours(Silent(), few, few)


def test_changed_attributes_compares_values():
    class Fitted:
        def __init__(self, **values):
            vars(self).update(values)

    one = Fitted(a_=np.arange(3), b_=1, c=5)
    assert changed_attributes(one, Fitted(a_=np.arange(3), b_=1, c=6)) == []
    assert changed_attributes(one, Fitted(a_=np.zeros(3), d_=1)) == ["a_", "b_", "d_"]


def test_recording_ends_with_its_block(few):
    clf = DPLeastSquares(epsilon=1.0, classes=range(3))
    with recording() as recorder:
        clf.fit(*few)
    clf.fit(*few)
    assert len(recorder.calls) == 3
    assert len(recorder.of("gram")) == 1


def test_audits_say_what_an_estimator_lacks():
    model = SimpleNamespace(get_params=lambda deep: {})
    for refused in (
        lambda: replay(model, np.eye(2), [0, 1], record=0),
        lambda: columns_of(model, np.array([0, 1])),
    ):
        with pytest.raises(TypeError, match="without"):
            refused()
