"""The batched trials of the paper's protocol against our estimators and plain loops."""

import json
import math
import sys
from pathlib import Path

import dp_accounting
import numpy as np
import optax
import pytest
import reproduce
import reproduce_tables
from dp_accounting.rdp import RdpAccountant
from reproduce import accounting, adam, feature_covariance, least_squares, newton
from reproduce.problem import Problem, clipped_gradients, noisy_symmetric
from reproduce.search import METHODS, _parameters

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.data import write_features

N, D, M = 60, 5, 3
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D)) * rng.uniform(0.5, 3.0, size=(N, 1))
    return X, rng.integers(M, size=N)


@pytest.fixture
def problem(data):
    return Problem(*data, *data, M)


def table(**columns):
    size = len(columns["clip_norm"])
    return {name: np.array(values) for name, values in columns.items()} | {
        "draw": np.zeros(size, int)
    }


def papers(estimator, **parameters):
    """Return an estimator of ours, without noise and as the paper has its rows."""
    # nothing of ours that the paper has not
    fixed = {
        "epsilon": math.inf,
        "classes": range(M),
        "row_scaling": "clip",
        "center": False,
        "fit_intercept": False,
    }
    return estimator(**fixed, **parameters)


NOISELESS = {"sigma": 0.0, "rng": None}


def test_feature_covariance_equals_our_estimator(problem, data):
    rates, lams = [2.0, 0.5], [0.01, 0.2]
    trials = table(clip_norm=[math.inf] * 2, learning_rate=rates, lam=lams)
    coefs = feature_covariance.fit(problem, trials, n_iter=4, bias=0.0, **NOISELESS)
    for coef, rate, lam in zip(coefs, rates, lams, strict=True):
        ours = papers(
            DPFC,
            loss="sigmoid",
            n_iter=4,
            learning_rate=rate,
            ridge=N * lam,
        ).fit(*data)
        np.testing.assert_allclose(coef, ours.coef_, rtol=1e-3, atol=1e-4)


def test_adam_equals_our_estimator(problem, data):
    rates, lams = [0.3, 0.1], [0.01, 0.2]
    trials = table(clip_norm=[math.inf] * 2, learning_rate=rates, lam=lams)
    coefs = adam.fit(problem, trials, n_iter=4, bias=0.0, **NOISELESS)
    for coef, rate, lam in zip(coefs, rates, lams, strict=True):
        ours = papers(
            DPAdamLinear,
            loss="sigmoid",
            n_iter=4,
            optimizer=optax.adam(rate),
            ridge=N * lam,
            iterate="last",
        ).fit(*data)
        np.testing.assert_allclose(coef, ours.coef_, rtol=1e-3, atol=1e-4)


def test_least_squares_equals_our_estimator(problem, data):
    alphas, lams = [0.1, 3.0], [0.5, 2.0]
    trials = table(clip_norm=[math.inf] * 2, alpha=alphas, lam=lams)
    coefs = least_squares.fit(problem, trials, n_iter=1, **NOISELESS)
    for coef, alpha, lam in zip(coefs, alphas, lams, strict=True):
        ours = papers(
            DPLeastSquares,
            class_gram=True,
            alpha=alpha,
            ridge=lam,
        ).fit(*data)
        np.testing.assert_allclose(coef, ours.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_iter", [1, 3])
def test_newton_equals_our_estimator(problem, data, n_iter):
    rates, lams = [1.0, 0.3], [0.5, 2.0]
    trials = table(clip_norm=[math.inf] * 2, learning_rate=rates, lam=lams)
    coefs = newton.fit(problem, trials, n_iter=n_iter, **NOISELESS)
    for coef, rate, lam in zip(coefs, rates, lams, strict=True):
        ours = papers(
            DPNewton,
            loss="sigmoid",
            n_iter=n_iter,
            learning_rate=rate,
            ridge=lam,
        ).fit(*data)
        np.testing.assert_allclose(coef, ours.coef_, rtol=1e-3, atol=1e-4)


def test_clipped_gradients_equal_a_loop_over_records(problem):
    coefs = np.random.default_rng(3).normal(size=(2, M, D)).astype(np.float32)
    clips, bias = np.array([0.3, 2.0]), -1.5
    expected = np.zeros((2, M, D))
    for k, clip in enumerate(clips):
        for x, label in zip(problem.X.astype(float), problem.y, strict=True):
            p = 1 / (1 + np.exp(-(coefs[k] @ x) - bias))
            gradient = np.outer(p - (np.arange(M) == label), x)
            norm = np.linalg.norm(gradient)
            expected[k] += gradient * min(1.0, clip / norm)
    sums = clipped_gradients(problem, coefs, clips, bias)
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)


def test_the_gram_is_that_of_clipped_rows(problem):
    for clip in (0.01, 1.0, 100.0):
        rows = [x * min(1, clip / np.linalg.norm(x)) for x in problem.X.astype(float)]
        gram = sum(np.outer(x, x) for x in rows)
        np.testing.assert_allclose(problem.gram(clip), gram, rtol=1e-4, atol=1e-7)
        blocks = sum(problem.class_gram(label, clip) for label in range(M))
        np.testing.assert_allclose(blocks, gram, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_zcdp_rho_solves_the_papers_formula(epsilon):
    rho = accounting.zcdp_rho(epsilon, 1e-5)
    spent = rho + 2 * math.sqrt(rho * math.log(1e5))
    assert spent == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_renyi_rho_agrees_with_dp_accounting(epsilon):
    sigma = adam.noise_multiplier(epsilon, 1e-5, 10)
    orders = 1 + np.geomspace(0.05, 5000, 2000)
    accountant = RdpAccountant(orders)
    event = dp_accounting.GaussianDpEvent(sigma)
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, 10))
    assert accountant.get_epsilon(1e-5) == pytest.approx(epsilon, rel=2e-3)


def test_multipliers_follow_the_theorems():
    rho = accounting.zcdp_rho(1.0, 1e-5)
    assert least_squares.noise_multiplier(1.0, 1e-5, 1) ** 2 == pytest.approx(1.5 / rho)
    assert newton.noise_multiplier(1.0, 1e-5, 10) ** 2 == pytest.approx(10 / rho)
    fc = feature_covariance.noise_multiplier(1.0, 1e-5, 10)
    assert fc**2 == pytest.approx(11 / (2 * rho))


def test_noisy_symmetric_projects_only_on_request():
    rng, exact = np.random.default_rng(0), np.eye(6, dtype=np.float32)
    noisy = noisy_symmetric(exact, 5.0, rng, project=True)
    np.testing.assert_allclose(noisy, noisy.T, atol=1e-4)
    assert np.linalg.eigvalsh(noisy).min() > -1e-4
    printed = noisy_symmetric(exact, 5.0, rng, project=False)
    assert not np.allclose(printed, printed.T)


@pytest.mark.statistical
@pytest.mark.parametrize("method", [feature_covariance, least_squares, newton])
def test_classes_and_draws_have_noise_of_their_own(method):
    """400 draws: |correlation| >= 0.3 for 1 key in 1e8; 1 if noise is shared."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 400)) * 1e-6
    problem = Problem(X, np.arange(40) % 2, X, np.arange(40) % 2)
    gram = np.zeros((400, 400), np.float32)
    problem.gram = problem.class_gram = lambda *_: gram
    coefs = _noise_only(method, problem, rng)
    correlations = np.corrcoef(coefs.reshape(4, -1)) - np.eye(4)
    assert np.abs(correlations).max() < 0.3


def _noise_only(method, problem, rng):
    trials = table(
        clip_norm=[1e-6] * 2,
        learning_rate=[1.0] * 2,
        lam=[1e8] * 2,
        alpha=[1.0] * 2,
    ) | {"draw": np.arange(2)}
    return method.fit(problem, trials, sigma=1e3, n_iter=1, rng=rng, project=False)


@pytest.mark.parametrize("name", METHODS)
def test_parameters_stay_in_the_papers_range(problem, name):
    method = METHODS[name]
    point = dict.fromkeys(method.decades(1), 30.0) | {"clip_norm": 1.0}
    values = _parameters(method, problem, [point], 1.0, 1)
    assert all(values[p][0] == 1e8 for p in method.decades(1))


def test_tuned_gives_a_cell_for_everything_asked(data):
    seen = []
    cells = reproduce.tuned(
        *data,
        *data,
        epsilons=[math.inf, 1.0],
        trials=5,
        epochs=(1, 10),
        on_cell=seen.append,
    )
    assert seen == cells
    assert len(cells) == 2 * (1 + 2 + 2 + 2)
    assert all(len(cell.scores) == 5 and 0 <= cell.mean <= 1 for cell in cells)
    best = reproduce.best_cells(cells)
    assert set(best) == {math.inf, 1.0}
    assert best[1.0].mean == max(c.mean for c in cells if c.epsilon == 1.0)


def test_published_tables_are_complete():
    path = Path(reproduce.__file__).parent / "published.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for name, expected in (("imagenet-1k", 2), ("cifar-10", 3), ("cifar-100", 3)):
        assert len(content[name]["rows"]) == expected
        for methods in content[name]["rows"].values():
            assert len(methods) == 8
            assert all(len(row) == 9 for row in methods.values())


def test_tuned_goes_on_from_the_cells_of_a_file(data):
    options = {"trials": 5, "methods": ["DP-FC"], "epochs": [1]}
    first = reproduce.tuned(*data, *data, epsilons=[8.0], **options)
    known = [reproduce.Cell.from_dict(json.loads(json.dumps(first[0].as_dict())))]
    cells = reproduce.tuned(*data, *data, epsilons=[8.0, 1.0], known=known, **options)
    assert cells[0] == first[0]
    assert [cell.epsilon for cell in cells] == [8.0, 1.0]


@pytest.mark.parametrize("method", [feature_covariance, adam])
def test_a_trained_bias_starts_where_the_fixed_one_stays(problem, method):
    trials = table(clip_norm=[math.inf], learning_rate=[0.5], lam=[0.1])
    rows = problem.with_constant
    assert rows.X.shape == (N, D + 1)
    assert np.all(rows.X[:, -1] == 1)
    trained, fixed = (
        method.fit(rows, trials, n_iter=1, bias=-10.0, trained=trained, **NOISELESS)
        for trained in (True, False)
    )
    fixed[:, :, -1] -= 10.0
    np.testing.assert_allclose(trained, fixed, rtol=1e-5, atol=1e-5)
    # the decay of the weights leaves it: with no gradient left it would go to 0
    free = method.fit(rows, trials, n_iter=9, bias=-1e4, trained=True, **NOISELESS)
    assert np.all(free[:, :, -1] < -9e3)


@pytest.mark.parametrize("bias", ["fixed", "trained", "none"])
def test_tables_continue_and_know_their_bias(tmp_path, data, bias, monkeypatch):
    X, y = data
    write_features(
        tmp_path / "a.h5", {"train": (X, y), "test": (X, y)}, class_names=list("abc")
    )
    words = f"--trials 5 --epochs 1 --epsilons 1 8 --bias {bias} --methods DP-FC"
    out = tmp_path / "a.json"
    argv = ["benchmarks/reproduce_tables.py", tmp_path / "a.h5", *words.split()]
    monkeypatch.setattr(sys, "argv", [*map(str, argv), "--out", str(out)])
    reproduce_tables.main()
    first = json.loads(out.read_text())
    assert list(first["cells"]) == ["DP-FC 1, 8", "DP-FC 1, 1"]
    assert first["settings"]["bias"] == bias
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--methods", "DP-FC", "DP-LS"])
    reproduce_tables.main()
    second = json.loads(out.read_text())
    assert len(second["cells"]) == 4
    for name, cell in first["cells"].items():
        assert second["cells"][name] == cell
    assert len(second["tables"]["a"]["rows"]) == 2
