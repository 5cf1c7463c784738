import math

import numpy as np
import pytest

from privfeat.preprocessing import DPQuantiles

WANTED = (0.05, 0.25, 0.5, 0.75, 0.95)
BOUNDS = [0.0, -4.0], [100.0, 4.0]
pytestmark = pytest.mark.filterwarnings("ignore:epsilon should be at most 20")


def draw(n):
    rng = np.random.default_rng(0)
    return np.stack([rng.gamma(2.0, 10.0, n), rng.normal(size=n)], axis=1)


def test_quantiles_without_noise_are_within_a_cell():
    X = draw(5000)
    found = DPQuantiles(quantiles=WANTED, bounds=BOUNDS, epsilon=math.inf).fit(X)
    cells = np.array([100.0, 8.0]) / 256
    expected = np.quantile(X.clip(*BOUNDS), WANTED, axis=0)
    assert np.all(np.abs(found.quantiles_ - expected) <= cells)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_ranks_of_quantiles_have_the_noise_that_is_stated(adjacency):
    """Five standard deviations, of two columns: fixed keys, so never by chance."""
    X = draw(20_000)
    found = DPQuantiles(quantiles=WANTED, bounds=BOUNDS, adjacency=adjacency).fit(X)
    (release,) = found.privacy_.releases
    ranks = np.mean(X[:, None, :] <= found.quantiles_, axis=0)
    limit = 5.0 * release.noise_stddev * math.sqrt(3 * 4) / len(X)
    cell = 0.02  # of the records are in one cell at most
    assert np.all(np.abs(ranks - np.array(WANTED)[:, None]) < limit + cell)


def test_stated_noise_of_a_rank_is_an_upper_bound():
    """Of all ranks in many draws without records, before they are made to rise."""
    from privfeat.solvers.levels import agreed

    rng, sizes = np.random.default_rng(0), (4, 16, 64, 256)
    ranks = [
        np.cumsum(agreed([rng.normal(size=n) for n in sizes], [1.0] * 4)[0][-1])
        for _ in range(300)
    ]
    assert np.std(ranks, axis=0).max() < math.sqrt(3 * 4)


def test_ranks_are_features_and_go_back():
    X = draw(3000)
    found = DPQuantiles(bounds=BOUNDS, epsilon=8.0).fit(X)
    ranks = found.transform(X)
    assert ranks.min() >= 0.0
    assert ranks.max() <= 1.0
    assert np.all(np.abs(ranks.mean(axis=0) - 0.5) < 0.05)
    cells = np.array([100.0, 8.0]) / 256
    back = found.inverse_transform(ranks)
    assert np.mean(np.abs(back - X.clip(*BOUNDS)) <= cells) > 0.98


def test_cdf_never_falls_even_where_all_is_noise():
    found = DPQuantiles(quantiles=(0.0, 0.5, 1.0), epsilon=0.01).fit(np.zeros((3, 2)))
    assert np.all(np.diff(found.cdf_, axis=1) >= 0.0)
    assert np.all(np.diff(found.quantiles_, axis=0) >= 0.0)
    assert np.all(np.abs(found.quantiles_) <= 1.0)


def test_values_out_of_bounds_are_at_their_ends():
    one = DPQuantiles(epsilon=math.inf).fit([[-1e30], [1e30], [1.0]])
    two = DPQuantiles(epsilon=math.inf).fit([[-1.0], [1.0], [1.0]])
    assert np.array_equal(one.cdf_, two.cdf_)
    assert one.transform([[-1e9], [1e9]]).ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "bad",
    [
        {"quantiles": (0.5, 1.1)},
        {"quantiles": (math.nan,)},
        {"n_levels": 0},
        {"n_levels": 7},
        {"bounds": (1, 0)},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=r"must be|must rise"):
        DPQuantiles(**bad).fit(draw(10))
