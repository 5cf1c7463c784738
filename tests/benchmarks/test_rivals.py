"""The rivals of private regression: their accounting, and that they learn."""

import math

import _rivals
import numpy as np
import pytest
import rivals

from privfeat.core.accounting.conversions import gaussian_epsilon

FITS = [_rivals.adassp, _rivals.hessian_mixing]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ [0.5, -0.3, 0.2] + 0.05 * rng.normal(size=len(X))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("budget", ["tight", "published"])
def test_a_rival_learns_where_noise_is_small(fit, budget, data):
    coef = fit(*data, 5.0, 1e-6, np.random.default_rng(1), budget=budget)
    np.testing.assert_allclose(coef, [0.5, -0.3, 0.2], atol=0.05)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_largest_mu_meets_our_accounting(epsilon):
    mu = _rivals.largest_mu(epsilon, 1e-6)
    assert gaussian_epsilon(mu, 1e-6) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_tight_budget_needs_less_noise_than_the_published_one(epsilon):
    mu = _rivals.largest_mu(epsilon, 1e-6) / math.sqrt(2.0)
    tight = _rivals._gamma(epsilon, 1e-6, 100, 3, gradient_mu=mu)
    published = _rivals._gamma(epsilon / 2, 2.5e-7, 100, 3, published=True)
    assert 1.0 < tight < published
    # a sketch cannot cost less than the Gaussian mechanism that it tends to
    assert tight > 100 * 3 / (2 * math.log(1e6) + 2 * epsilon)


def test_california_housing_is_measured_where_scikit_learn_has_it(
    california_home, monkeypatch, tmp_path, capsys
):
    words = ["rivals", "none", "--california", california_home, "--epsilons", 1]
    words += ["--repeats", 2, "--out", tmp_path / "r.json"]
    monkeypatch.setattr("sys.argv", [*map(str, words)])
    rivals.main()
    printed = capsys.readouterr().out
    assert "California housing, n=32, d=8" in printed
    assert printed.count("\nCalifornia housing ") == len(rivals.CONTENDERS) - 1
    assert "red wine" not in printed
