"""The benchmark of public rows, without its data."""

from types import SimpleNamespace

import numpy as np
import pytest

from privfeat import DPFC

public = pytest.importorskip("public")


def test_halves_share_no_row():
    rows = np.arange(10)[:, None]
    first, (second, labels) = public.halves(rows, np.arange(10))
    assert sorted([*first[:, 0], *second[:, 0]]) == list(range(10))
    np.testing.assert_array_equal(second[:, 0], labels)


def test_splits_of_arrays_are_those_of_the_file(tmp_path):
    arrays = {"X_train": np.eye(3), "y_train": np.arange(3), "X_test": np.eye(2)}
    np.savez(tmp_path / "set.npz", y_test=np.ones(2), **arrays)
    (X, y), (_, held_out) = public.splits(tmp_path / "set.npz")
    np.testing.assert_array_equal(X[y == 1], [[0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(held_out, np.ones(2))


def test_turned_rows_keep_their_lengths():
    rows = np.random.default_rng(1).normal(size=(3, 5))
    found = public.turned(rows)
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5
    )
    assert np.all(np.any(np.abs(found - rows) > 0.01, axis=1))


def test_rows_of_other_widths_fit_in():
    rows = np.ones((2, 3))
    assert public.fitted_in(rows, 5).sum() == 6.0
    assert public.fitted_in(rows, 2).shape == (2, 2)


def test_losses_are_those_of_paired_fits():
    cells = {
        "a, 500, 1": {"none": [50.0, 60.0], "same": [51.0, 60.5], "x": [49.0, 58.9]},
        "a, 500, 8": {"none": [50.0, 60.0], "same": [40.0, 70.0]},
    }
    assert public.losses(cells) == ["a, 500, 1, x: 54.0 (-1.1 ± 0.1)"]


def test_center_is_the_mean_of_rows_of_unit_norm():
    found = public.unit_mean(np.array([[3.0, 4.0], [0.0, 0.5]]))
    np.testing.assert_allclose(found, [0.3, 0.9])


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_center_of_public_rows_saves_the_release_of_a_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[:, 0] += 4 * y
    kinds = {"same": X.copy(), f"same{public.CENTERED}": X.copy()}
    made = []

    def make(**options):
        made.append(DPFC(n_iter=2, **options))
        return made[-1]

    options = {"epsilon": 8.0, "delta": 1e-5, "classes": [0, 1]}
    once = SimpleNamespace(repeats=1)
    found = public.paired(make, options, kinds, (X, y), (X, y), 30, once)
    assert [len(each) for each in found.values()] == [1, 1, 1]
    names = [[release.name for release in clf.privacy_.releases] for clf in made]
    assert ["feature_mean" in each for each in names] == [True, True, False]
